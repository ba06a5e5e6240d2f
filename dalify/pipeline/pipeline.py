"""``Pipeline``: a graph that is defined once and run for every batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dalify.base.errors import (
    ArgumentTypeError,
    DalifyError,
    NoGraphError,
    PipelineStateError,
)
from dalify.base.source_line import SourceLine
from dalify.graph import DataNode, Node, Role
from dalify.pipeline.checkpoints import Saved, text_of
from dalify.pipeline.current import pop_current, push_current, top
from dalify.pipeline.facts import Facts
from dalify.pipeline.inspection import Inspection
from dalify.pipeline.options import OperatorConcurrency, PipelineOptions, StreamPolicy, option_names
from dalify.pipeline.parts import Parts
from dalify.pipeline.private_methods import PrivateMethods
from dalify.pipeline.reader_information import ReaderInformation
from dalify.pipeline.run import TensorList

__all__ = ["Pipeline", "parts_of"]

if TYPE_CHECKING:
    from dalify.executor.recovery import BadSample


class Pipeline(Inspection, Facts, PrivateMethods):
    """A graph of operators and the threads that run it.

    Most users get one from a function decorated with ``@pipeline_def``; a subclass may define ``define_graph``
    instead, or the graph may be given with ``set_outputs`` inside ``with pipeline:``.

    A pipeline is thread-safe: each batch is returned to one thread. ``close`` raises an error in waiting
    threads. A forked child has the pipeline in its current state, even if a thread of the parent is inside ``run``.

    ``PipelineOptions`` describes the arguments. The first eleven may be positional, in DALI's order.

    Args:
        batch_size: maximum number of samples in a batch.
        num_threads: number of worker threads.
        device_id: index of the accelerator; None: the current one, if the graph needs one.
        seed: seed of all random numbers.
        exec_pipelined: prefetch batches.
        prefetch_queue_depth: number of batches in progress at the same time.
        exec_async: prefetch in other threads.
        bytes_per_sample: no effect.
        set_affinity: no effect.
        max_streams: no effect, with a warning.
        default_cuda_stream_priority: no effect, with a warning.
        enable_memory_stats: measure the statistics of ``executor_statistics``.
        enable_checkpointing: no effect.
        checkpoint: a saved state to continue from.
        py_num_workers: number of worker processes of parallel sources.
        py_start_method: start method of worker processes.
        py_callback_pickler: how callbacks are pickled for them.
        output_dtype: expected element type of each output.
        output_ndim: expected number of dimensions of each output.
        output_layout: expected layout of each output.
        exec_dynamic: no effect.
        experimental_exec_dynamic: old name of ``exec_dynamic``.
        stream_policy: no effect.
        concurrency: no effect.
        options: arguments that DALI's pipeline does not have: enable_conditionals, on_error, max_error_rate,
            limits, precision, processes, taps.
    """

    def __init__(
        self,
        batch_size: int | None = None,
        num_threads: int | None = None,
        device_id: int | None = None,
        seed: int | None = None,
        exec_pipelined: bool = True,
        prefetch_queue_depth: int | Mapping[str, int] = 2,
        exec_async: bool = True,
        bytes_per_sample: int = 0,
        set_affinity: bool = False,
        max_streams: int | None = None,
        default_cuda_stream_priority: int | None = None,
        *,
        enable_memory_stats: bool = False,
        enable_checkpointing: bool = False,
        checkpoint: Any = None,
        py_num_workers: int | None = 1,
        py_start_method: str = "fork",
        py_callback_pickler: Any = None,
        output_dtype: Any = None,
        output_ndim: Any = None,
        output_layout: Any = None,
        exec_dynamic: bool | None = None,
        experimental_exec_dynamic: bool | None = None,
        stream_policy: StreamPolicy | None = None,
        concurrency: OperatorConcurrency | None = None,
        **options: Any,
    ) -> None:
        arguments = locals()
        line = SourceLine.capture()
        given = {name: arguments[name] for name in option_names() if name in arguments} | options
        try:
            checked = PipelineOptions.of(given)
        except DalifyError as error:
            error.locate(line=line)
            raise
        self._parts = self._new_parts(checked, line)
        if checked.checkpoint is not None:
            self._parts.checkpoints.take(checked.checkpoint)

    def _new_parts(self, options: PipelineOptions, line: SourceLine | None) -> Parts:
        return Parts.of(self, options, line)

    @staticmethod
    def current() -> Pipeline | None:
        """Return the pipeline that is being defined in this thread, or None."""
        return top()

    @staticmethod
    def push_current(pipeline: Pipeline) -> None:
        """Push a pipeline; it is current until ``pop_current``."""
        push_current(pipeline)

    @staticmethod
    def pop_current() -> None:
        """Pop the current pipeline; the previous one becomes current."""
        pop_current()

    def __enter__(self) -> Self:
        """Begin the definition of the graph."""
        self._parts.definition.begin()
        return self

    def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
        """End the definition."""
        self._parts.definition.end(exception_type, exception_value, traceback)

    def define_graph(self) -> Any:
        """Return the outputs; subclasses override it.

        Raises:
            NoGraphError: not overridden, and no outputs were set.
        """
        raise NoGraphError(
            "the pipeline has no outputs.",
            line=self._parts.line,
            hint="Use @pipeline_def, call pipe.set_outputs(...), or override define_graph() in a subclass.",
        )

    def iter_setup(self) -> None:
        """Feed data for the next iteration; subclasses of old programs override it and call ``feed_input``."""

    def set_outputs(self, *outputs: Any) -> None:
        """Set the outputs of the graph: nodes, numbers, arrays, or nested tuples and lists of these at the top level.

        Raises:
            PipelineStateError: the pipeline is already built.
        """
        if self._parts.builder.built is not None:
            raise PipelineStateError(
                "the outputs of a pipeline cannot be changed after it is built.", line=SourceLine.capture()
            )
        self._parts.definition.set_outputs(outputs)

    def add_sink(self, edge: DataNode) -> None:
        """Keep a node in the graph even if no output needs it."""
        self._parts.definition.add_sink(edge)

    def external_sources(self) -> tuple[Node, ...]:
        """Return the nodes of the graph that take data from outside."""
        return tuple(node for node in self._parts.builder.graph().nodes() if node.role is Role.FED)

    def copy(self, **options: Any) -> Pipeline:
        """Return a new pipeline with the graph of this one; neither has begun what the other has.

        Args:
            options: of the new one; the others are those of this one.
        """
        graph = self._parts.builder.graph()
        made = Pipeline(**{**self._parts.options.given(), **options})
        made._parts.definition.take(graph)
        return made

    def build(self) -> None:
        """Check and build the graph. The first run does it if necessary."""
        self._parts.builder.build()

    def run(self, cuda_stream: Any = None, /, **inputs: Any) -> tuple[TensorList, ...]:
        """Return the outputs of the next iteration and schedule further ones.

        Args:
            cuda_stream: no effect; outputs are ready on torch's current stream.
            inputs: data for external sources, by name; then nothing is prefetched.

        Raises:
            ArgumentTypeError: data without the name of their source.
            StopIteration: a source is exhausted; until ``reset``.
            Exception: an error of this iteration. The pipeline remains usable: the next run returns the next iteration.
        """
        if isinstance(cuda_stream, (list, tuple)) or hasattr(cuda_stream, "__array__"):
            raise ArgumentTypeError("data are passed to run by name.", hint="Write pipe.run(name=data).")
        return self._parts.run.run(inputs)

    def schedule_run(self) -> None:
        """Schedule an iteration without waiting for it."""
        self._parts.run.schedule()

    def share_outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Wait for the oldest scheduled iteration and return its outputs.

        Args:
            cuda_stream: no effect; outputs are ready on torch's current stream.

        Raises:
            StopIteration: nothing is scheduled, because a source is exhausted.
        """
        return self._parts.run.share_outputs()

    def release_outputs(self) -> None:
        """Release the outputs that ``share_outputs`` returned last. Memory is reused when no view of it is left."""
        self._parts.run.release_outputs()

    def outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Return the outputs of the oldest scheduled iteration and release the previous ones."""
        self.release_outputs()
        return self.share_outputs(cuda_stream)

    def output_stream(self) -> None:
        """Return None: outputs are ready on torch's current stream."""
        return

    def __iter__(self) -> Iterator[tuple[TensorList, ...]]:
        """Yield batches until the data end; begin the next epoch if they have ended."""
        if self.is_at_end:
            self.reset()
        return self

    def __next__(self) -> tuple[TensorList, ...]:
        """Return the outputs of the next iteration."""
        return self.run()

    def enable_api_check(self, enable: bool) -> None:
        """Enable or disable the check that only one API runs the pipeline."""
        self._parts.run.checks_api = enable

    def feed_input(
        self,
        data_node: str | DataNode,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """Feed a batch to an external source without ``source``.

        Args:
            data_node: its node or its name.
            data: an array with a leading sample axis, or a list of samples.
            layout: layout of the samples.
            cuda_stream: no effect.
            use_copy_kernel: no effect.

        Raises:
            PipelineStateError: there is no such external source, or it has a ``source``.
        """
        self._parts.run.feed(data_node, data, layout)

    def input_feed_count(self, input_name: str) -> int:
        """Return how many batches must be fed before the first run can return."""
        return 1

    def reset(self) -> None:
        """Begin the next epoch of all external sources, at any position of the current one.

        Their batches in progress are dropped. If the current epoch has not returned anything yet, nothing happens.

        Unlike in DALI, a reset before the end of the data has an effect. Readers are endless and continue at their
        position.
        """
        self._parts.run.reset()

    def start_epoch(self, epoch: int = 0) -> None:
        """Begin an epoch at its first sample, at any position of the current one; batches in progress are dropped.

        Args:
            epoch: number of the readers' epoch, which determines order and shard. External sources begin their next
                epoch, or the same one if it has not returned anything.
        """
        self._parts.run.start_epoch(epoch)
        self._parts.checkpoints.iterator_state = None

    @property
    def is_at_end(self) -> bool:
        """Whether a source is exhausted and no batch is in progress: ``reset`` is needed to continue."""
        return self._parts.run.is_at_end

    @property
    def next_epoch(self) -> int:
        """Number of the first epoch of which no iterator has returned a batch."""
        return self._parts.run.next_epoch

    @next_epoch.setter
    def next_epoch(self, epoch: int) -> None:
        self._parts.run.next_epoch = epoch

    @property
    def has_run(self) -> bool:
        """Whether a batch was requested, through any API."""
        return self._parts.run.api is not None

    @property
    def has_endless_data(self) -> bool:
        """Whether the data are endless: there is no external source, only readers and random operators."""
        return not self._parts.builder.engine().feeds.externals

    @property
    def has_only_sources(self) -> bool:
        """Whether the pipeline has no reader."""
        return not self._parts.builder.engine().feeds.readers

    def prepare(self) -> None:
        """Schedule batches so that the first one is ready sooner; has no effect without data."""
        self._parts.run.prefetch()

    def next_outputs(self) -> tuple[TensorList, ...]:
        """Return the outputs of the next iteration, for an iterator; may be mixed with other APIs.

        Raises:
            StopIteration: a source is exhausted; until ``reset``.
        """
        return self._parts.run.next_outputs()

    def state_dict(self, iterator: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the position of the consumer, after any batch, as a few hundred bytes of JSON data.

        The batches after ``load_state_dict`` are bit for bit the same as without interruption, also with another
        number of threads, prefetch depth or device. The time to save does not depend on the position, nor does the
        time to load for readers and for callables with an argument. An iterable is iterated again up to the position,
        unless it has ``state_dict()`` and ``load_state_dict(state)``. Not included: state of Python functions in the
        graph, and fed batches.

        Args:
            iterator: state of an iterator, see ``iterator_state``.

        Raises:
            CheckpointError: the ``state_dict()`` of a user's source returns data that JSON cannot represent.

        Example:
            >>> state = pipe.state_dict()
            >>> other.load_state_dict(state)  # continues at the position of pipe
        """
        return self._parts.checkpoints.state(iterator)

    def load_state_dict(self, state: Saved) -> None:
        """Continue at the position of a state of a pipeline with the same graph.

        Batches in progress are dropped. Invalid states and states of another graph are rejected before anything
        changes.

        A run may continue with another ``num_shards``: the samples that no shard has read in this epoch are divided
        among the new shards, and each is read once.

        Args:
            state: result of ``state_dict()``, of this or another process. To continue with another number of shards,
                the list of the states of all shards, saved after the same batch, in any order; every new shard loads
                the same list. One state is enough if all shards have the same order (no ``random_shuffle``).

        Raises:
            CheckpointError: a state of another graph, batch size, seed or data, or one that was modified.
        """
        self._parts.checkpoints.load(state)

    def checkpoint(self, filename: str | PathLike[str] | None = None) -> bytes:
        """Return ``state_dict()`` as JSON text, for ``Pipeline(checkpoint=...)``.

        Args:
            filename: path of a file to which it is also written. The file is replaced atomically.
        """
        return text_of(self.state_dict(), filename)

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """Whether the pipeline continues from a saved state."""
        return self._parts.checkpoints.is_restored

    @property
    def iterator_state(self) -> dict[str, Any] | None:
        """State of the iterator in the loaded state, or None."""
        return self._parts.checkpoints.iterator_state

    def epoch_size(self, name: str | None = None) -> int | dict[str, int]:
        """Return the number of samples of a reader, or of all named readers.

        With ``pad_last_batch`` it is a multiple of the number of shards, because all are padded to the same length.
        """
        meta = self.reader_meta(name)
        if name is not None:
            return meta["epoch_size_padded"]
        return {key: value["epoch_size_padded"] for key, value in meta.items()}

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Return sizes and sharding of a reader, or of all readers by name.

        Raises:
            PipelineStateError: there is no reader of that name.
        """
        readers = ReaderInformation(self._parts.builder.engine())
        return readers.meta() if name is None else readers.meta_of(name)

    def left_of_epochs(self, name: str) -> dict[int, int]:
        """Return the number of samples of all shards that are left of epochs begun with another number of shards.

        Args:
            name: name of the reader.
        """
        return ReaderInformation(self._parts.builder.engine()).left_of_epochs(name)

    def bad_samples(self, epoch: int | None = None) -> list[BadSample]:
        """Return the samples that could not be read or decoded, in the order of the batches that the user received.

        With ``on_error="skip"`` or ``"replace"``. At least the latest 25,000; ``bad_count`` counts all. The list of
        a resumed pipeline starts empty.

        Args:
            epoch: epoch of the reader, from 0; None for all since the pipeline was created.

        Example:
            >>> for bad in pipe.bad_samples():
            ...     print(bad)  # photos/cat/17.jpg: DecodeError: the JPEG data end too early. (fn.decoders.image …)
        """
        return ReaderInformation(self._parts.builder.engine()).bad_samples(epoch)

    @property
    def bad_count(self) -> int:
        """Number of samples that could not be read or decoded, including those that ``bad_samples`` omits."""
        return self._parts.builder.engine().recovery.bad_count

    @property
    def valid(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which samples of the last returned batch are real, bool ``[samples]``.

        False for padding (``pad_last_batch``) and for replacements of bad samples, so that metrics can ignore them.
        """
        return self._parts.builder.engine().valid

    def empty(self) -> bool:
        """Return whether no batch is in progress."""
        return (
            self._parts.builder.built is None
            or self._parts.builder.is_closed
            or not self._parts.builder.engine().scheduled
        )

    def start_py_workers(self) -> None:
        """Start the worker processes of parallel sources now, while a fork is still safe."""
        self.build()

    def close(self) -> None:
        """Stop the threads and worker processes; the pipeline cannot run afterwards.

        A thread that waits for a batch receives a PipelineStateError.
        """
        self._parts.builder.close()

    def __repr__(self) -> str:
        """Return batch size and number of threads."""
        options = self._parts.options
        return f"<{type(self).__name__} batch_size={options.batch_size} num_threads={options.num_threads}>"


def parts_of(pipeline: Pipeline) -> Parts:
    """Return the parts of a pipeline, for code of the package and its tests."""
    return pipeline._parts
