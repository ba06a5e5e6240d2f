"""Readers of dynamic mode: ``for files, labels in ndd.readers.File(file_root=…).next_epoch(batch_size=32)``.

A reader is an object with a position in its data. It is a pipeline of one node, so shuffling, shards, prefetching and
states work as in pipelines.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any, cast

from dalify.api import keyword_parameters, to_user_outputs
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    CheckpointError,
    DalifyError,
    PipelineStateError,
    locating,
)
from dalify.base.narrow import is_integer
from dalify.base.source_line import SourceLine
from dalify.data import batch_of
from dalify.experimental.dynamic.batch import Batch
from dalify.experimental.dynamic.context import EvalContext
from dalify.experimental.dynamic.devices import device as device_of
from dalify.experimental.dynamic.dtypes import DType, type_id
from dalify.experimental.dynamic.states import StateString
from dalify.experimental.dynamic.tensor import Tensor
from dalify.graph import DataNode, call
from dalify.pipeline import Pipeline
from dalify.registry import Operator

_ITEM, _BATCHES, _SAMPLES = "reader()", "next_epoch(batch_size=...)", "next_epoch()"


class ReaderState(StateString):
    """Position of a reader."""

    __slots__ = ()


class Reader:
    """A reader. Each reader has its own class, e.g. ``ndd.readers.File``.

    Args:
        max_batch_size: size of the batches of ``next_epoch()``; without it, single samples are returned.
        name: accepted but ignored.
        device: device of the outputs.
        num_inputs: accepted but ignored.
        enable_checkpointing: accepted but ignored: states can always be saved.
        arguments: arguments of the reader in ``fn.readers``.

    Raises:
        UnknownArgumentError: the argument does not exist.
    """

    operator: Operator

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: Any = "cpu",
        num_inputs: int | None = None,
        *,
        enable_checkpointing: bool = False,
        **arguments: Any,
    ) -> None:
        self._line = SourceLine.capture()
        given = {key: value for key, value in arguments.items() if value is not None}
        with locating(self._line, self.operator.public_name):
            self.operator.check_names(given)
            target = device_of(device)
            _check_size(max_batch_size, "max_batch_size")
        self._arguments = {key: type_id(value) if isinstance(value, DType) else value for key, value in given.items()}
        self._device = "cpu" if target is None else target.device_type
        self._size = max_batch_size
        self._pipeline: Pipeline | None = None
        self._has_read = False  # otherwise the pipeline was only used for metadata
        self._usage: str | None = None
        self._epoch = 0
        self._returned = 0  # number of samples of this epoch
        self._pending_state: dict[str, Any] | None = None  # a state to load when the pipeline is created

    def next_epoch(
        self, batch_size: int | None = None, ctx: EvalContext | None = None, capture: bool = False
    ) -> Iterator[Any]:
        """Yield an epoch of the shard: tuples of batches, or of tensors without a batch size.

        If the loop ends early, the reader stays at its position, where the next epoch starts.

        Args:
            batch_size: must always be the same; default ``max_batch_size``.
            ctx: specifies the number of threads that decode and read; by default the current context.
            capture: has no effect on the results; it requires a batch size, as in DALI.

        Raises:
            ArgumentValueError: the batch size differs from the previous one, or exceeds ``max_batch_size``, or
                ``capture`` without a batch size.
            PipelineStateError: the reader was used in another way before.
        """
        size = self._checked(batch_size)
        if capture and size is None:
            raise ArgumentValueError.here("capture=True requires batch_size.")
        return self._epoch_of(size, ctx or EvalContext.current(), False)

    def rest_of_epoch(self, batch_size: int | None = None, ctx: EvalContext | None = None) -> Iterator[Any]:
        """Yield the rest of the epoch of the state that was passed to ``set_state``.

        DALI has no such method: ``next_epoch`` of DALI and of dalify returns the number of samples of a whole epoch.

        Args:
            batch_size: see ``next_epoch``.
            ctx: see ``next_epoch``.
        """
        return self._epoch_of(self._checked(batch_size), ctx or EvalContext.current(), True)

    def _checked(self, batch_size: int | None) -> int | None:
        """Return the batch size of an epoch; None for samples."""
        size = self._size if batch_size is None else batch_size
        _check_size(size, "batch_size")
        if self._size is not None and size is not None and size > self._size:
            raise ArgumentValueError.here(f"batch_size={size} is larger than max_batch_size={self._size}.")
        self._set_usage(_SAMPLES if size is None else _BATCHES)
        return size

    def _epoch_of(self, size: int | None, context: EvalContext, is_rest: bool) -> Iterator[Any]:
        pipe, step = self._pipeline_for(size or 1, context), size or 1
        count = self._epoch_length(pipe)
        if not is_rest:
            if self._returned >= count:  # the last batch was returned, and the loop ended without requesting another
                self._epoch += 1
                count = self._epoch_length(pipe)
            self._returned = 0
        while self._returned < count:
            self._returned += step
            yield self._outputs(pipe, size is not None)
        self._epoch, self._returned = self._epoch + 1, 0

    def _epoch_length(self, pipe: Pipeline) -> int:
        """Return the number of samples of this shard in this epoch."""
        meta = pipe.reader_meta("reader")
        size, shards, shard = meta["epoch_size"], meta["number_of_shards"], meta["shard_id"]
        if meta["pad_last_batch"]:
            return -(-size // shards)
        if not meta["stick_to_shard"]:
            shard = (shard + self._epoch) % shards
        return size * (shard + 1) // shards - size * shard // shards

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """Return the next batch, or, without ``batch_size``, the next sample, without an end.

        A single output is not in a tuple, unlike in ``next_epoch``; several outputs are a tuple.

        Raises:
            PipelineStateError: the reader was used in another way before.
        """
        _check_size(batch_size, "batch_size")
        self._set_usage(_ITEM)
        outputs = self._outputs(self._pipeline_for(batch_size or 1, EvalContext.current()), batch_size is not None)
        return outputs[0] if isinstance(outputs, tuple) and len(outputs) == 1 else outputs

    def _outputs(self, pipe: Pipeline, is_batched: bool) -> Any:
        kind = Batch if is_batched else Tensor
        results = [kind.from_data(batch_of(item)) for item in pipe.run()]
        result = to_user_outputs(self.operator, results, self._arguments)
        if isinstance(result, (Batch, Tensor)):
            return (result,)
        return tuple(result) if isinstance(result, list) else result

    def _set_usage(self, usage: str) -> None:
        if self._usage is not None and self._usage != usage:
            raise PipelineStateError.here(
                f"this reader was used with {self._usage} before; it cannot be used with {usage}.",
                operator=self.operator.public_name,
                hint="Create another reader.",
            )
        self._usage = usage

    def _pipeline_for(self, size: int, context: EvalContext) -> Pipeline:
        """Return the pipeline to read from, which is created if necessary."""
        pipe = self._pipeline
        if pipe is not None and pipe.max_batch_size != size and not self._has_read:
            pipe.close()
            pipe = None
        if pipe is None:
            pipe = self._pipeline = self._create_pipeline(size, context)
        if pipe.max_batch_size != size:
            raise ArgumentValueError.here(
                f"batch_size={size} differs from the previous batch size, {pipe.max_batch_size}.",
                hint="Create another reader for another batch size.",
            )
        self._has_read = True
        if self._pending_state is not None:
            self._restore(pipe, self._pending_state)
        return pipe

    def _create_pipeline(self, size: int, context: EvalContext) -> Pipeline:
        pipe = Pipeline(size, context.num_threads, context.device_id, seed=0)
        try:
            with pipe:
                nodes = call(self.operator, (), {**self._arguments, "device": self._device, "name": "reader"})
                listed = [nodes] if isinstance(nodes, DataNode) else nodes or []
                pipe.set_outputs(*listed)
            pipe.build()
        except DalifyError as error:
            error.line = self._line
            raise
        return pipe

    def get_metadata(self, batch_size: int | None = None) -> dict[str, Any]:
        """Return sizes and sharding, as ``Pipeline.reader_meta`` does.

        Args:
            batch_size: batch size of later calls, which avoids indexing the data twice.
        """
        if self._pipeline is None:
            self._pipeline = self._create_pipeline(batch_size or self._size or 1, EvalContext.current())
        return self._pipeline.reader_meta("reader")

    def get_state(self, *, cuda_stream: Any = None) -> ReaderState:
        """Return the position of the reader: the sample after the last received sample.

        Args:
            cuda_stream: accepted but ignored.

        Raises:
            CheckpointError: no sample was read yet.
        """
        if self._pipeline is None or not self._has_read:
            raise CheckpointError.here(
                "a reader has no state before its first epoch.",
                operator=self.operator.public_name,
                hint="Call it inside or after the loop over next_epoch().",
            )
        state = {"epoch": self._epoch, "given": self._returned, "pipeline": self._pipeline.state_dict()}
        return ReaderState(json.dumps(state, separators=(",", ":")))

    def set_state(self, state: ReaderState | str) -> None:
        """Continue at a result of ``get_state`` of a reader of the same data.

        ``next_epoch`` then returns a whole epoch from this position, as in DALI; ``rest_of_epoch`` returns the rest of
        the interrupted epoch.

        Args:
            state: result of ``get_state``, or its string.

        Raises:
            CheckpointError: the value is not a state of a reader, or is a state for other data.
        """
        try:
            read = json.loads(str(state))
            found = {"epoch": int(read["epoch"]), "given": int(read["given"]), "pipeline": dict(read["pipeline"])}
        except (ValueError, TypeError, KeyError):
            raise CheckpointError.here(
                f"{state!r} is not a state of a reader.", hint="Pass the result of reader.get_state(), or its string."
            ) from None
        if self._pipeline is None or not self._has_read:
            self._pending_state = found
        else:
            self._restore(self._pipeline, found)

    def _restore(self, pipe: Pipeline, state: dict[str, Any]) -> None:
        pipe.load_state_dict(state["pipeline"])
        self._epoch, self._returned, self._pending_state = state["epoch"], state["given"], None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._arguments)})"


def _check_size(size: Any, name: str) -> None:
    if size is not None and not (is_integer(size) and size >= 1):
        raise ArgumentTypeError.here(f"{name} must be a positive integer; got {size!r}.")


def make_reader(operator: Operator, public_name: str) -> type[Reader]:
    """Create the class for a reader, with its documentation.

    Args:
        operator: operator of the reader.
        public_name: public name of the class.
    """
    module, _, name = public_name.rpartition(".")
    own = list(inspect.signature(Reader).parameters.values())[:-1]  # without **arguments
    names = {item.name for item in own} | {"preserve", "bytes_per_sample_hint"}
    keywords = [item for item in keyword_parameters(operator) if item.name not in names]
    signature = [*own, *(_not_given(item) for item in keywords)]
    members = {
        "operator": operator,
        "__signature__": inspect.Signature(signature),
        "__doc__": operator.doc,
        "__module__": f"dalify.experimental.dynamic.{module.partition('.')[2]}",
    }
    return cast("type[Reader]", type(name, (Reader,), members))


def _not_given(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a keyword parameter with the default None."""
    default = parameter.default if parameter.default is parameter.empty else None
    return parameter.replace(kind=parameter.KEYWORD_ONLY, default=default)
