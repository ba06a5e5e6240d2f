"""``Pipeline``: a graph that is defined once and run for every batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

import numpy as np

from dalify.base.context_stack import ContextStack
from dalify.base.deprecation import warn_deprecated
from dalify.base.errors import ArgumentTypeError, NoGraphError, PipelineStateError, SerializationError, locating
from dalify.base.source_line import SourceLine
from dalify.data import tensor_list
from dalify.executor.options import OPTION_NAMES, OperatorConcurrency, PipelineOptions, StreamPolicy, options_from_json
from dalify.graph import DataNode, Node
from dalify.pipeline.checkpoints import Saved, text_of
from dalify.pipeline.context import PipelineContext
from dalify.pipeline.inspection import deserialized
from dalify.pipeline.parts import MissingParts, Parts
from dalify.pipeline.run import TensorList

if TYPE_CHECKING:
    from dalify.executor.recovery import BadSample

_being_defined: ContextStack[Pipeline] = ContextStack()


def _option(name: str, text: str) -> Any:
    """Return a property with an option of the pipeline."""
    return property(lambda pipe: getattr(parts_of(pipe).context.options, name), doc=text)


class Pipeline:
    """A graph of operators and the threads that run it.

    Usually a function decorated with ``@pipeline_def`` creates a pipeline. Alternatively, a subclass defines
    ``define_graph``, or ``set_outputs`` specifies the outputs inside ``with pipeline:``.

    A pipeline is thread-safe: each batch is returned to one thread. ``close`` raises an error in waiting
    threads. A forked child has a copy of the pipeline in its current state, even if a thread of the parent is inside
    ``run``.

    The first eleven arguments may be positional, in DALI's order. DALI's class does not have the last eight.

    Args:
        batch_size: maximum number of samples in a batch; sources may return fewer.
        num_threads: number of worker threads; by default the number of CPUs that this process may use, at most 8.
        device_id: index of the accelerator; None: torch's current accelerator, if the graph needs one.
        seed: seed of all random numbers; None: a new seed for every pipeline.
        exec_pipelined: prefetch batches.
        prefetch_queue_depth: number of batches in progress at the same time, or ``{"cpu_size": n, "gpu_size": m}``,
            which cannot be combined with ``exec_async=False`` or ``exec_dynamic=True``, as in DALI. With several
            threads, pipelines on the CPU without external sources compute as many batches at the same time as are
            needed to keep the threads busy. 1 disables prefetching.
        exec_async: prefetch in other threads. If this or ``exec_pipelined`` is False, a batch is started when it is
            requested.
        bytes_per_sample: no effect; buffers grow as needed.
        set_affinity: no effect; the operating system places threads.
        max_streams: no effect, with a warning.
        default_cuda_stream_priority: no effect, with a warning.
        enable_memory_stats: measure the sizes of the outputs of all operators, see ``Pipeline.executor_statistics``.
        enable_checkpointing: no effect; the state can always be saved.
        checkpoint: a saved state to continue from.
        py_num_workers: number of worker processes of parallel sources; with 0 or None such sources are an error.
        py_start_method: ``fork``, ``spawn`` or ``forkserver``.
        py_callback_pickler: how callbacks are pickled for workers that are not forked.
        output_dtype: expected element type of all outputs, or a list with one per output.
        output_ndim: expected number of dimensions of all outputs, or a list with one per output.
        output_layout: expected layout of all outputs, or a list with one per output.
        exec_dynamic: no effect; memory and copies are always dynamic.
        experimental_exec_dynamic: old name of ``exec_dynamic``.
        stream_policy: no effect.
        concurrency: no effect.
        options: the arguments below.
        enable_conditionals: convert ``if`` and similar statements; on by default, unlike DALI.
        on_error: behavior if a reader or decoder fails for a sample: ``raise`` an error; ``skip`` the sample and
            use another sample of the shard; ``replace`` the sample by a blank sample. Default for all readers and
            decoders without ``on_error``. See ``Pipeline.bad_samples``.
        max_error_rate: maximum fraction in [0, 1] of the samples of an epoch that may be skipped or replaced; if it is
            exceeded, the run stops with an error. None: no limit.
        limits: limits of image size, sample size and sizes that headers declare: ``dalify.limits.Limits``, or a
            dictionary of changes to the limits of the process, ``{"max_image_pixels": 400_000_000}``. None: the limits
            of the process.
        precision: ``fp32``, or the type of float32 output images: ``fp16`` or ``bf16``. Everything is computed in
            float32; only the result is stored with 16 bits. Outputs whose layout has no H and W are unchanged: boxes,
            coordinates, audio.
        processes: number of worker processes that compute the batches; each has its own interpreter and
            ``num_threads / processes`` threads, at least one. 0: this process computes the batches. Batches, states
            and errors are the same. Sources, operators on the device, and Python functions without ``parallel=True``
            run in this process. The start method is ``py_start_method``. See docs/processes.md.
        taps: names of operators whose values ``Pipeline.tap`` returns after each batch.
        callback_timeout_s: maximum time in seconds of one call of a parallel external source, of reading one sample in
            a process of ``fn.readers.dataset(processes=...)``, or of one batch with ``processes=N``. A worker process
            that takes longer is ended and replaced. Its batch raises a WorkerError that names the callback; with
            ``processes``, the batch is first computed again. None: no limit. Only for pipelines with worker processes,
            because a Python function in this process cannot be interrupted. Worker processes use SIGALRM and
            ``signal.setitimer`` for the limit.
    """

    _parts: Parts = cast("Any", MissingParts())  # until __init__ sets it

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
        given = {name: arguments[name] for name in OPTION_NAMES if name in arguments} | options
        with locating(line):
            checked = PipelineOptions.of(given)
        self._parts = self._new_parts(PipelineContext(self, checked, line))
        if checked.checkpoint is not None:
            self._parts.checkpoints.take(checked.checkpoint)

    def _new_parts(self, context: PipelineContext) -> Parts:
        return Parts.of(context)

    def copy(self, **options: Any) -> Pipeline:
        """Return a new pipeline with the same graph. The runs of the two pipelines are independent.

        Args:
            options: options of ``Pipeline`` that the new pipeline changes; all others are copied.
        """
        graph = self._parts.builder.graph()
        result = Pipeline(**{**self._parts.context.options.given(), **options})
        result._parts.definition.take(graph)
        return result

    def __repr__(self) -> str:
        """Return batch size and number of threads."""
        options = self._parts.context.options
        return f"<{type(self).__name__} batch_size={options.batch_size} num_threads={options.num_threads}>"

    def __reduce__(self) -> NoReturn:
        """Raise an error: a pipeline cannot be pickled or copied.

        Raises:
            SerializationError: always; the message says what to send instead.
        """
        raise SerializationError(
            "a pipeline cannot be pickled or copied: it owns threads and batches in progress.",
            line=self._parts.context.line,
            hint="Send the function that creates it and call it in the other process, or send pipe.serialize() and "
            "call Pipeline.deserialize() there. pipe.state_dict() contains the position of the run.",
        )

    # -- the graph

    @staticmethod
    def current() -> Pipeline | None:
        """Return the pipeline that is being defined in this thread, or None."""
        return _being_defined.innermost

    @staticmethod
    def push_current(pipeline: Pipeline) -> None:
        """Push a pipeline; it is current until ``pop_current``."""
        _being_defined.chosen.append(pipeline)

    @staticmethod
    def pop_current() -> None:
        """Pop the current pipeline; the previous one becomes current."""
        if not _being_defined.chosen:
            raise PipelineStateError("there is no current pipeline to pop.")
        _being_defined.chosen.pop()

    def __enter__(self) -> Self:
        """Begin the definition of the graph."""
        self._parts.definition.begin()
        self.push_current(self)
        return self

    def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
        """End the definition."""
        self.pop_current()
        self._parts.definition.end(exception_type, exception_value, traceback)

    def define_graph(self) -> Any:
        """Return the outputs; subclasses override it.

        Raises:
            NoGraphError: not overridden, and no outputs were set.
        """
        raise NoGraphError(
            "the pipeline has no outputs.",
            line=self._parts.context.line,
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
            raise PipelineStateError.here("the outputs of a pipeline cannot be changed after it is built.")
        self._parts.definition.set_outputs(outputs)

    def add_sink(self, edge: DataNode) -> None:
        """Keep a node in the graph even if no output needs it."""
        self._parts.definition.add_sink(edge)

    def external_sources(self) -> tuple[Node, ...]:
        """Return the nodes of the graph that take data from outside."""
        return self._parts.inspection.external_sources()

    # -- the run

    def build(self) -> None:
        """Check and build the graph. The first run calls this method if necessary."""
        self._parts.builder.build()

    def start_py_workers(self) -> None:
        """Start the worker processes of parallel sources now, while a fork is still safe."""
        self.build()

    def close(self) -> None:
        """Stop the threads and worker processes; the pipeline cannot run afterwards.

        A thread that waits for a batch receives a PipelineStateError.
        """
        self._parts.builder.close()

    def run(self, cuda_stream: Any = None, /, **inputs: Any) -> tuple[TensorList, ...]:
        """Return the outputs of the next iteration, and schedule further iterations.

        Args:
            cuda_stream: no effect; outputs are ready on torch's current stream.
            inputs: data for external sources, by name. With inputs, nothing is prefetched.

        Raises:
            ArgumentTypeError: data without the name of their source.
            StopIteration: a source is exhausted; raised by every call until ``reset``.
            Exception: an error of this iteration. The pipeline remains usable: the next run returns the next iteration.
        """
        if isinstance(cuda_stream, (list, tuple)) or hasattr(cuda_stream, "__array__"):
            raise ArgumentTypeError("run() accepts data as keyword arguments only.", hint="Write pipe.run(name=data).")
        return self._parts.run.run(inputs)

    def __iter__(self) -> Iterator[tuple[TensorList, ...]]:
        """Return an iterator over batches until the data end; begin the next epoch if the data have ended."""
        if self.is_at_end:
            self.reset()
        return self

    def __next__(self) -> tuple[TensorList, ...]:
        """Return the outputs of the next iteration."""
        return self.run()

    def schedule_run(self) -> None:
        """Schedule an iteration without waiting for it; the first call in an epoch also schedules prefetched ones."""
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
        """Release the last outputs of ``share_outputs``. Their memory is reused when no view of it is left."""
        self._parts.run.release_outputs()

    def outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Release the previous outputs, and return the outputs of the oldest scheduled iteration."""
        self.release_outputs()
        return self.share_outputs(cuda_stream)

    def output_stream(self) -> None:
        """Return None: outputs are ready on torch's current stream."""
        return

    def prepare(self) -> None:
        """Schedule batches so that the first batch is ready sooner; has no effect without data."""
        self._parts.run.prefetch()

    def next_outputs(self) -> tuple[TensorList, ...]:
        """Return the outputs of the next iteration, for an iterator; may be mixed with other APIs.

        Raises:
            StopIteration: a source is exhausted; raised by every call until ``reset``.
        """
        return self._parts.run.next_outputs()

    def empty(self) -> bool:
        """Return whether no batch is in progress."""
        return self._parts.run.is_empty

    def enable_api_check(self, enable: bool) -> None:
        """Enable or disable the check that only one API runs the pipeline."""
        self._parts.run.checks_api = enable

    @property
    def has_run(self) -> bool:
        """Whether a batch was requested, through any API."""
        return self._parts.run.api is not None

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
            data_node: the external source, or its name.
            data: an array with a leading sample axis, or a list of samples.
            layout: layout of the samples.
            cuda_stream: no effect.
            use_copy_kernel: no effect.

        Raises:
            PipelineStateError: there is no such external source, or it has a ``source``.
        """
        self._parts.run.feed(data_node, data, layout)

    def input_feed_count(self, input_name: str) -> int:
        """Return the number of batches that the first run takes from an external source, if they have been fed.

        Raises:
            UnknownInputError: the pipeline has no external source of this name.
        """
        return self._parts.run.feed_count(input_name)

    def tap(self, name: str) -> Any:
        """Return the output of a named operator for the last returned batch, even if it is not a pipeline output.

        Args:
            name: name of the operator: ``fn.resize(images, size=224, name="resized")``. Create the pipeline
                with ``taps=["resized"]``; other values are not kept.

        Returns:
            a tensor list; a tuple of tensor lists if the operator has several outputs.

        Raises:
            PipelineStateError: the name is not in ``taps``, or no batch has been returned yet.

        Example:
            >>> pipe = training("photos", taps=["resized"])
            >>> batch = pipe.run()
            >>> pipe.tap("resized").shape()
        """
        values = [tensor_list(batch) for batch in self._parts.taps.value(name)]
        return values[0] if len(values) == 1 else tuple(values)

    # -- epochs

    def reset(self) -> None:
        """Begin the next epoch of all external sources, at any position of the current epoch.

        Their batches in progress are dropped. If the current epoch has not returned a batch yet, nothing happens.

        Unlike in DALI, a reset before the end of the data has an effect. Readers are endless and continue at their
        position.
        """
        self._parts.run.reset()

    def start_epoch(self, epoch: int = 0) -> None:
        """Begin an epoch at its first sample, at any position of the current epoch; batches in progress are dropped.

        Args:
            epoch: number of the readers' epoch, which determines order and shard. External sources begin their next
                epoch, or restart the current epoch if it has not returned a batch.
        """
        self._parts.run.start_epoch(epoch)
        self._parts.checkpoints.iterator_state = None

    @property
    def is_at_end(self) -> bool:
        """Whether a source is exhausted and no batch is in progress: ``reset`` is needed to continue."""
        return self._parts.run.is_at_end

    @property
    def next_epoch(self) -> int:
        """Number of the first epoch from which no iterator has returned a batch."""
        return self._parts.run.next_epoch

    @next_epoch.setter
    def next_epoch(self, epoch: int) -> None:
        self._parts.run.next_epoch = epoch

    def check_caller(self) -> None:
        """Check that the caller is not a function that this pipeline calls, which would wait for itself.

        Raises:
            PipelineStateError: the pipeline calls the function now.
        """
        self._parts.builder.check_caller()

    @property
    def has_endless_data(self) -> bool:
        """Whether the data are endless: there is no external source, only readers and random operators."""
        return not self._parts.builder.externals()

    @property
    def has_only_sources(self) -> bool:
        """Whether the pipeline has no reader."""
        return not self._parts.builder.readers()

    # -- readers and samples

    def epoch_size(self, name: str | None = None) -> int | dict[str, int]:
        """Return the number of samples of a reader, or of all named readers.

        With ``pad_last_batch`` the number is a multiple of the number of shards, because all shards are padded to the
        same length.
        """
        return self._parts.inspection.epoch_size(name)

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Return sizes and sharding of a reader, or of all readers by name.

        Raises:
            PipelineStateError: there is no reader of that name.
        """
        return self._parts.inspection.reader_meta(name)

    def remaining_of_epochs(self, name: str) -> dict[int, int]:
        """Return, by epoch, the number of samples left in epochs that began with another number of shards.

        The number counts the samples of all shards.

        Args:
            name: name of the reader.
        """
        return self._parts.inspection.remaining_of_epochs(name)

    def bad_samples(self, epoch: int | None = None) -> list[BadSample]:
        """Return the samples that could not be read or decoded, in the order of the batches that the user received.

        The list contains samples that were skipped or replaced (``on_error="skip"`` or ``"replace"``), at least the
        latest 25,000; ``bad_count`` counts all. The list of a resumed pipeline starts empty.

        Args:
            epoch: epoch of the reader, from 0; None for all since the pipeline was created.

        Example:
            >>> for bad in pipe.bad_samples():
            ...     print(bad)  # photos/cat/17.jpg: DecodeError: the JPEG data end too early. (fn.decoders.image …)
        """
        return self._parts.inspection.bad_samples(epoch)

    @property
    def bad_count(self) -> int:
        """Number of samples that could not be read or decoded, including those that ``bad_samples`` omits."""
        return sum(engine.recovery.bad_count for engine in self._parts.builder.engine().engines)

    @property
    def valid(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which samples of the last returned batch are real, bool ``[samples]``.

        False for padding (``pad_last_batch``) and for replacements of bad samples, so that metrics can ignore them.
        """
        return self._parts.builder.engine().valid

    # -- checkpoints

    def state_dict(self, iterator: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the position of the consumer, after any batch: a few hundred bytes that JSON can represent.

        The batches after ``load_state_dict`` are bit for bit the same as without interruption, also with another
        number of threads, prefetch depth or device. Saving takes the same time at any position, and so does loading
        for readers and for callables with an argument. An iterable is iterated again up to the position, unless it has
        ``state_dict()`` and ``load_state_dict(state)``. The state of Python functions in the graph and fed batches are
        not included.

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
            CheckpointError: the state belongs to another graph, batch size, seed or data, or was modified.
        """
        self._parts.checkpoints.load(state)

    def checkpoint(self, filename: str | PathLike[str] | None = None) -> bytes:
        """Return ``state_dict()`` as JSON text, for ``Pipeline(checkpoint=...)``.

        Args:
            filename: path of a file to which the text is also written. The file is replaced atomically.
        """
        return text_of(self.state_dict(), filename)

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """Whether the pipeline continues from a saved state."""
        return self._parts.checkpoints.is_restored

    @property
    def iterator_state(self) -> dict[str, Any] | None:
        """State of the iterator that the loaded state contains, or None."""
        return self._parts.checkpoints.iterator_state

    # -- options

    max_batch_size: int = _option("batch_size", "Maximum number of samples in a batch.")
    num_threads: int = _option("num_threads", "Number of worker threads.")
    device_id: int | None = _option("device_id", "Index of the accelerator.")
    prefetch_queue_depth: Any = _option(
        "prefetch_queue_depth", "Number of batches in progress at the same time, as specified."
    )
    exec_pipelined: bool = _option("exec_pipelined", "As specified.")
    exec_async: bool = _option("exec_async", "As specified.")
    exec_separated: bool = _option("is_separated", "Whether the two queue sizes were specified separately.")
    exec_dynamic: bool | None = _option(
        "is_dynamic", "As specified, or DALI's default; memory and copies are always dynamic."
    )
    py_num_workers: int | None = _option("py_num_workers", "Number of worker processes of parallel sources.")
    py_start_method: str = _option("py_start_method", "Start method of worker processes.")
    stream_policy: Any = _option("stream_policy", "As specified; no effect.")
    concurrency: Any = _option("concurrency", "As specified; no effect.")
    set_affinity: bool = _option("set_affinity", "As specified; no effect.")
    enable_memory_stats: bool = _option("enable_memory_stats", "As specified.")
    bytes_per_sample: int = _option("bytes_per_sample", "As specified; no effect.")

    @property
    def batch_size(self) -> int:
        """Old name of ``max_batch_size``."""
        warn_deprecated("Pipeline.batch_size is now called max_batch_size.")
        return self._parts.context.options.batch_size

    @property
    def seed(self) -> int:
        """Seed of all random numbers; drawn at random if not specified."""
        return self._parts.builder.seed

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self._parts.builder.graph().outputs)

    def output_dtype(self) -> list[Any]:
        """Return the expected element type of each output; None for any."""
        return [self._parts.context.options.expected("dtype", index) for index in range(self.num_outputs)]

    def output_ndim(self) -> list[Any]:
        """Return the expected number of dimensions of each output; None for any."""
        return [self._parts.context.options.expected("ndim", index) for index in range(self.num_outputs)]

    def output_layout(self) -> list[Any]:
        """Return the expected layout of each output; None for any."""
        return [self._parts.context.options.expected("layout", index) for index in range(self.num_outputs)]

    @property
    def cpu_queue_size(self) -> int:
        """Number of batches in progress before the device stage, as specified."""
        return self._parts.context.options.depth_of("cpu")

    @property
    def gpu_queue_size(self) -> int:
        """Number of batches in progress on the device, as specified."""
        return self._parts.context.options.depth_of("gpu")

    @property
    def max_streams(self) -> int:
        """-1, which means no limit; the option has no effect, as in DALI."""
        return -1

    @property
    def default_cuda_stream_priority(self) -> int:
        """0; the option has no effect, as in DALI. Work is submitted to torch's streams."""
        return 0

    # -- inspection and serialization

    def explain(self) -> str:
        """Return a string that lists the changes of each pass to the graph and their reasons, with the user's lines.

        It lists pruned, folded, merged, split, placed and copied nodes; with ``processes``, also which nodes run in
        the worker processes.
        """
        return self._parts.inspection.explain()

    def executor_statistics(self) -> dict[str, Any]:
        """Return the size in bytes of the outputs of each operator; needs ``enable_memory_stats=True``.

        Values inside a chunk of samples share the scratch memory of their thread, so the sum over all operators
        is much larger than the memory of the pipeline.

        Returns:
            by device and name of the operator, ``"CPU_resized"``, lists with one number for each output:
            ``real_memory_size`` (bytes of the largest batch), ``max_real_memory_size`` (bytes of the largest sample),
            and the same values as ``reserved_memory_size`` and ``max_reserved_memory_size``.
            Empty if nothing is measured.
        """
        return self._parts.inspection.executor_statistics()

    def external_source_shm_statistics(self) -> dict[str, list[int]]:
        """Return the sizes of the shared memory slots that workers fill for ``external_source(parallel=True)``.

        Slots grow with the data, so these are the current sizes.

        Returns:
            ``capacities``: bytes of each slot, one batch of one source; ``per_sample_capacities``: the same, divided by
            the batch size. Empty without parallel sources, and before the pipeline is built.
        """
        return self._parts.inspection.shared_memory_statistics()

    def save_graph_to_dot_file(
        self,
        filename: str | PathLike[str],
        *,
        show_tensors: bool = False,
        show_ids: bool | None = None,
        use_colors: bool = False,
    ) -> None:
        """Write the graph, as the user defined it, in Graphviz' DOT language.

        Args:
            filename: path of the file.
            show_tensors: ignored.
            show_ids: ignored, with a warning.
            use_colors: ignored.
        """
        if show_ids is not None:
            warn_deprecated("The argument 'show_ids' no longer has an effect and can be omitted.")
        self._parts.inspection.write_dot(filename)

    def save_graph_to_svg_file(self, filename: str | PathLike[str]) -> None:
        """Draw the graph, as the user defined it, as SVG; no other program is needed.

        Args:
            filename: path of the file.
        """
        self._parts.inspection.write_svg(filename)

    def _repr_svg_(self) -> str:
        """Show the graph in a notebook."""
        return self._parts.inspection.svg()

    def serialize(self, define_graph: Any = None, filename: str | PathLike[str] | None = None) -> bytes:
        """Return the graph and the main arguments as JSON, which ``deserialize`` reads without executing code.

        Args:
            define_graph: a function that returns the outputs; for old programs.
            filename: path of a file to which the JSON is also written.

        Raises:
            SerializationError: the graph contains Python functions.
        """
        if define_graph is not None:
            with self:
                result = define_graph()
            self.set_outputs(*(result if isinstance(result, (tuple, list)) else (result,)))
        return self._parts.inspection.serialized(filename)

    @classmethod
    def deserialize(
        cls,
        serialized_pipeline: bytes | str | None = None,
        filename: str | PathLike[str] | None = None,
        *,
        allow_side_effects: bool = False,
        **options: Any,
    ) -> Self:
        """Create a pipeline from the result of ``serialize``.

        No code in the JSON is executed. The readers of the pipeline can read any file that this process can read.

        Args:
            serialized_pipeline: the JSON. Specify either this or `filename`.
            filename: path of a file that contains the JSON.
            allow_side_effects: accept operators that write files or run Python code, such as ``fn.dump_image``. Only
                for trusted input.
            options: arguments of ``Pipeline`` that override those in the JSON.

        Raises:
            SerializationError: not a serialized pipeline, damaged, or with an operator that writes files or runs Python
                code.
        """
        if (serialized_pipeline is None) == (filename is None):
            raise ArgumentTypeError.here("pass either the serialized pipeline or filename.")
        graph, saved = deserialized(serialized_pipeline, filename, allow_side_effects=allow_side_effects)
        given = {name: value for name, value in options.items() if value is not None}
        pipe = cls(**{**options_from_json(saved), **given})
        pipe._parts.definition.take(graph)
        return pipe

    def deserialize_and_build(self, serialized_pipeline: bytes | str, *, allow_side_effects: bool = False) -> None:
        """Load the graph of a serialized pipeline and build it with this pipeline's own arguments.

        Args:
            serialized_pipeline: the JSON.
            allow_side_effects: see ``deserialize``.

        Raises:
            PipelineStateError: this pipeline already has a graph.
            SerializationError: see ``deserialize``.
        """
        if not self._parts.definition.is_empty:
            raise PipelineStateError("this pipeline already has a graph.", line=self._parts.context.line)
        graph, _ = deserialized(serialized_pipeline, allow_side_effects=allow_side_effects)
        self._parts.definition.take(graph)
        self.build()

    # -- methods of DALI's pipeline that published loaders call although their names begin with an underscore

    def _prefetch(self) -> None:
        self.prepare()

    def _run_once(self) -> None:
        self.schedule_run()

    def _run(self) -> None:
        warn_deprecated("Pipeline._run() is now called schedule_run().")
        self.schedule_run()

    def _share_outputs(self) -> Any:
        warn_deprecated("Pipeline._share_outputs() is now called share_outputs().")
        return self.share_outputs()

    def _release_outputs(self) -> None:
        warn_deprecated("Pipeline._release_outputs() is now called release_outputs().")
        self.release_outputs()

    def _outputs(self, cuda_stream: Any = None) -> Any:
        return self.outputs(cuda_stream)


def parts_of(pipeline: Pipeline) -> Parts:
    """Return the parts of a pipeline, for code of the package and its tests."""
    return pipeline._parts  # pyright: ignore[reportPrivateUsage] -- not for users
