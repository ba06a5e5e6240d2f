"""``MediaPipe``: the base class of users' pipes.

Implements the life of a pipe: defined once, built, and run epoch after epoch.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    GraphError,
    PipelineStateError,
    check_option,
    locating,
)
from dalify.base.processors import has_accelerator
from dalify.base.source_line import SourceLine
from dalify.mediapipe.node import BatchReader, Lowering, Node, seed_of
from dalify.mediapipe.tensors import DeviceTensor
from dalify.pipeline import Pipeline

_log = logging.getLogger("dalify.mediapipe")
_ON_ERROR = ("raise", "replace")  # readers return whole batches, so a single sample cannot be replaced by another file
_ACCELERATED = ("mixed", "legacy", "hpu", "gaudi", "gaudi2", "gaudi3", "gpu", "cuda", "auto")


def _wants_accelerator(device: Any) -> bool:
    """Return whether a device name requests an accelerator.

    Raises:
        ArgumentValueError: the name is not the name of a device.
    """
    if device is None or device == "cpu":
        return False
    name = str(device).lower().split(":")[0]
    if name not in _ACCELERATED:
        known = ", ".join(["cpu", *_ACCELERATED])
        raise ArgumentValueError(f"device must be one of {known}; got {device!r}.")
    return True


class _Built(NamedTuple):
    """A pipe that is ready to run.

    Attributes:
        pipeline: its last output is the number of real samples, if there is a reader.
        readers: its readers.
        kinds: of each output, whether it has one value per sample, and whether it is rounded to bfloat16.
    """

    pipeline: Pipeline
    readers: list[BatchReader]
    kinds: list[tuple[bool, bool]]


class MediaPipe:
    """A pipe of operators: derive a class from it and define ``definegraph``.

    No Gaudi is needed. ``"cpu"`` is the CPU. For every other name, images are decoded and processed on the accelerator
    that torch finds; on a machine without one, everything runs on the CPU, with a log message. The ``device`` of single
    operators is ignored: results stay on the device where they are computed.

    Args:
        device: "cpu"; "mixed", "legacy", "hpu", "gaudi2", "gpu", "auto" … (see above). None: "cpu".
        prefetch_depth: number of batches prefetched; with 0 and 1, a batch is computed when it is requested.
        batch_size: samples per batch.
        num_threads: number of worker threads; a string is the name, as in old programs.
        pipe_name: name, used in the representation.
        old: channels, height, width, name and layout of very old programs; only the name is used.
        queue_depth: old name of `prefetch_depth`.
        layout: from very old programs; ignored.
        seed: seed of all operators without their own seed; random by default.
        on_error: behavior of decoders for a damaged file: "raise", or "replace" to return a blank image.

    Example:
        >>> class Pipe(MediaPipe):
        ...     def __init__(self, folder):
        ...         super().__init__(device="cpu", batch_size=32)
        ...         self.input = fn.ReadImageDatasetFromDir(dir=folder)
        ...         self.decode = fn.ImageDecoder(resize=[224, 224])
        ...
        ...     def definegraph(self):
        ...         files, labels = self.input()
        ...         return self.decode(files), labels
    """

    def __init__(
        self,
        device: str | None = None,
        prefetch_depth: int = 2,
        batch_size: int = 1,
        num_threads: int | str | None = None,
        pipe_name: str | int | None = None,
        *old: Any,
        queue_depth: int | None = None,
        layout: str | None = None,
        seed: int | None = None,
        on_error: str = "raise",
    ) -> None:
        del layout
        if len(old) > 1:  # (device, queue_depth, batch_size, channel, height, width, name, layout)
            num_threads, pipe_name = None, old[1]
        if isinstance(num_threads, str):
            num_threads, pipe_name = None, num_threads
        self._line = SourceLine.capture()
        self.device = "cpu" if device is None else device
        self.pipe_name = pipe_name
        self.batch_size = batch_size
        self._depth = prefetch_depth if queue_depth is None else queue_depth
        self._seed = None if seed is not None and seed < 0 else seed
        self._options = {
            "num_threads": num_threads or -1,
            "seed": seed_of(self._seed),
            "on_error": on_error,
        }
        self._built: _Built | None = None
        self._repeats = 1
        self._epochs_left = 0
        self._has_started = False
        self._is_at_end = False
        self.last_outputs: tuple[DeviceTensor, ...] = ()
        with locating(self._line):
            self._accelerate = _wants_accelerator(device)
            if not isinstance(self._depth, int) or self._depth < 0:
                raise ArgumentValueError(f"prefetch_depth must be 0 or more; got {self._depth!r}.")
            if not isinstance(batch_size, int) or batch_size < 1:
                raise ArgumentValueError(f"batch_size must be 1 or more; got {batch_size!r}.")
            check_option("on_error", on_error, _ON_ERROR)

    def definegraph(self) -> Any:
        """Return the outputs: a node or a tuple of nodes. The user's class must define it.

        Raises:
            GraphError: the user's class does not define this method.
        """
        raise GraphError(
            f"{type(self).__name__} does not define definegraph().",
            line=self.__dict__.get("_line"),  # the user's class may not have called our __init__
            hint="Define def definegraph(self), which returns the outputs: return images, labels.",
        )

    def build(self) -> None:
        """Define and build the graph; further calls do nothing.

        Raises:
            DalifyError: the graph is invalid; with the operator and the user's line.
        """
        if "_built" not in self.__dict__:
            name = type(self).__name__
            raise PipelineStateError.here(
                f"{name}.__init__ did not call MediaPipe.__init__.",
                hint="Call super().__init__(device=…, batch_size=…) in its first line.",
            )
        if self._built is not None:
            return
        results = self.definegraph()
        nodes = [results] if isinstance(results, Node) else results
        if not isinstance(nodes, (tuple, list)) or not nodes or not all(isinstance(each, Node) for each in nodes):
            found = type(results).__name__
            if isinstance(nodes, (tuple, list)):
                found += f" of {', '.join(type(each).__name__ for each in nodes) or 'nothing'}"
            raise ArgumentTypeError(
                f"definegraph() must return a node or a tuple of nodes; got {found}.",
                line=SourceLine.of_method(self.definegraph) or self._line,
                hint="An operator with several results returns a tuple: images, labels = self.input().",
            )
        depth = max(1, self._depth)
        pipeline = Pipeline(batch_size=self.batch_size, prefetch_queue_depth=depth, **self._options)
        lowering = Lowering(self.batch_size, self._has_accelerator(), self._seed)
        with pipeline:
            values = lowering.values_of([node.edge for node in nodes])
        outputs = [value.node for value in values]
        pipeline.set_outputs(*outputs, *([] if lowering.valid is None else [lowering.valid]))
        pipeline.build()
        kinds = [(value.batched, value.is_bfloat16) for value in values]
        self._built = _Built(pipeline, lowering.readers, kinds)

    def _ready(self) -> _Built:
        self.build()
        assert self._built is not None, "dalify bug: build did not build"
        return self._built

    def _has_accelerator(self) -> bool:
        if not self._accelerate:
            return False
        if has_accelerator():
            return True
        _log.info("no accelerator on this machine: the pipe of device %r runs on the CPU", self.device)
        return False

    def as_pipeline(self) -> Pipeline:
        """Return the ``dalify.Pipeline`` of this pipe. Its last output is the number of real samples."""
        return self._ready().pipeline

    def iter_init(self) -> None:
        """Start an epoch, even if the last one is not finished; readers shuffle again."""
        built = self._ready()
        built.pipeline.reset()
        for reader in built.readers:
            reader.start_epoch()
        self._epochs_left = self._repeats - 1
        self._has_started, self._is_at_end = True, False

    def run(self) -> Any:
        """Return the outputs of the next batch: a tuple, even if there is only one output.

        Raises:
            StopIteration: the epoch has ended; until ``iter_init``.
            DalifyError: an error of this batch; the next call returns the next batch.
        """
        pipeline, readers, kinds = self._ready()
        if not self._has_started:
            self.iter_init()
        if self._is_at_end:
            raise StopIteration
        try:
            outputs = pipeline.run()
        except StopIteration:
            if self._epochs_left == 0:
                self._is_at_end = True
                raise
            left = self._epochs_left
            self.iter_init()
            self._epochs_left = left - 1
            outputs = pipeline.run()
        valid = None
        if readers:
            *outputs, counts = outputs
            valid = int(np.asarray(counts.as_tensor()).reshape(-1)[0])
        self.last_outputs = tuple(
            DeviceTensor(output, batched=batched, is_bfloat16=rounds, valid=valid)
            for output, (batched, rounds) in zip(outputs, kinds, strict=True)
        )
        return self.last_outputs

    def __iter__(self) -> Iterator[Any]:
        """Start an epoch and yield its batches."""
        self.iter_init()
        return self

    def __next__(self) -> Any:
        """Return the outputs of the next batch."""
        return self.run()

    def __len__(self) -> int:
        """Return the number of batches of an epoch.

        Raises:
            PipelineStateError: the pipe has no reader.
        """
        readers = self._ready().readers
        if not readers:
            raise PipelineStateError("this pipe has no reader, so the number of batches is unknown.", line=self._line)
        return len(readers[0])

    def __bool__(self) -> bool:
        """Return True, independent of the number of batches."""
        return True

    def getBatchSize(self) -> int:  # noqa: N802 -- the name that programs use
        """Return the number of samples of a batch."""
        return self.batch_size

    def set_repeat_count(self, count: int) -> None:
        """Repeat the data `count` times per epoch; -1 for endless repetition."""
        if not isinstance(count, int) or count == 0 or count < -1:
            raise ArgumentValueError.here(f"the repeat count must be -1 or at least 1; got {count!r}.")
        self._repeats = count if count > 0 else 0
        self._epochs_left = self._repeats - 1

    def explain(self) -> str:
        """Return a description of the compiled graph."""
        return str(self.as_pipeline().explain())

    def close(self) -> None:
        """Stop the threads. May be called repeatedly, and on an unfinished pipe."""
        built = self.__dict__.get("_built")
        if built is not None:
            built.pipeline.close()

    def __enter__(self) -> MediaPipe:
        """Return the pipe, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the pipe."""
        self.close()

    def __del__(self) -> None:
        """Close the pipe; users' classes call this."""
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} device={self.device!r} batch_size={self.batch_size}>"
