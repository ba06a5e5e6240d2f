"""A pipeline: a graph that is defined once and run for batch after batch."""

from __future__ import annotations

import atexit
import itertools
import secrets
import threading
import weakref
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from dalify.base.deprecation import warn_deprecated
from dalify.base.errors import (
    ArgumentTypeError,
    DalifyError,
    DTypeError,
    GraphError,
    LayoutError,
    PipelineStateError,
    ShapeError,
    suggestion,
)
from dalify.base.optional import LazyModule
from dalify.base.source_line import SourceLine
from dalify.data import Batch, PipelineAPIType, TensorListCPU, TensorListGPU, tensor_list
from dalify.graph import DataNode, Edge, Graph, Node, constant, is_promotable, recording
from dalify.graph.datanode import Expression
from dalify.graph.draw import to_dot, to_svg
from dalify.graph.serialize import dumps, from_json, loads, to_json
from dalify.pipeline.current import pop_current, push_current, top
from dalify.pipeline.options import PipelineOptions
from dalify.pipeline.resuming import Resumable

__all__ = ["Pipeline"]

if TYPE_CHECKING:
    from dalify.executor.engine import Engine
    from dalify.pipeline import build as building
else:
    # Passes, executor and sources are half of what there is to load, and needed when a pipeline is built.
    building = LazyModule("dalify.pipeline.build", "building a pipeline")

TensorList = TensorListCPU | TensorListGPU
_numbers = itertools.count()
_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def _close_engines() -> None:
    # Threads that run compiled code while the interpreter is taken down would crash it.
    for engine in list(_engines):
        engine.close()


class Pipeline(Resumable):
    """A graph of operators and the threads that run it.

    Most users get one from a function decorated with ``@pipeline_def``; a subclass may define ``define_graph``
    instead, or the graph may be given with ``set_outputs`` inside ``with pipeline:``.

    Args:
        batch_size: most samples in a batch.
        num_threads: worker threads.
        device_id: number of the accelerator; None for the current one where the graph needs one.
        seed: decides all random numbers.
        options: all further arguments, see ``PipelineOptions``.
    """

    def __init__(
        self,
        batch_size: int = -1,
        num_threads: int = -1,
        device_id: int | None = None,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        line = SourceLine.capture()
        if isinstance(seed, SupportsIndex):  # numpy's integers too, whose arithmetic overflows
            seed = None if int(seed) < 0 else int(seed)
        try:
            self._options = PipelineOptions.of(
                {"batch_size": batch_size, "num_threads": num_threads, "device_id": device_id, "seed": seed, **options}
            )
        except DalifyError as error:
            error.locate(line=line)
            raise
        self._line = line
        self._name = f"dalify-{next(_numbers)}"
        self._seed = self._options.seed if self._options.seed is not None else secrets.randbits(63)
        self._made: list[Node] = []
        self._sinks: list[Node] = []
        self._outputs: tuple[Edge, ...] | None = None
        self._traced: Graph | None = None
        self._built: building.Built | None = None
        self._tokens: list[Any] = []
        self._lock = threading.RLock()
        self._at_end = False
        self._closed = False
        self._api: PipelineAPIType | None = None
        self._checks_api = True
        self._shared: tuple[TensorList, ...] | None = None
        if self._options.checkpoint is not None:
            self._take(self._options.checkpoint)

    # -- definition
    # ----------------------------------------------------------------------------------------------------------

    @staticmethod
    def current() -> Pipeline | None:
        """Return the pipeline that is being defined in this thread, or None."""
        return top()

    @staticmethod
    def push_current(pipeline: Pipeline) -> None:
        """Make a pipeline the current one; ``pop_current`` undoes it."""
        push_current(pipeline)

    @staticmethod
    def pop_current() -> None:
        """Make the pipeline before the last ``push_current`` the current one."""
        pop_current()

    def __enter__(self) -> Pipeline:
        """Begin to define the graph."""
        scope = recording(self._made)
        scope.__enter__()
        self._tokens.append(scope)
        push_current(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        """End the definition."""
        pop_current()
        self._tokens.pop().__exit__(*exception)

    def define_graph(self) -> Any:
        """Return the outputs; subclasses override it.

        Raises:
            PipelineStateError: neither overridden nor were outputs set.
        """
        raise PipelineStateError(
            "the pipeline has no outputs.",
            line=self._line,
            hint="Use @pipeline_def, call pipe.set_outputs(...), or override define_graph() in a subclass.",
        )

    def iter_setup(self) -> None:
        """Feed data for the next iteration; subclasses of old programs override it and call ``feed_input``."""

    def set_outputs(self, *outputs: Any) -> None:
        """Give the outputs of the graph: nodes, numbers, arrays, or nested tuples and lists of these at the top."""
        self._outputs = tuple(_output_edges(outputs))

    def add_sink(self, node: DataNode) -> None:
        """Keep a node in the graph although no output needs it."""
        self._sinks.append(node.edge.node)

    def _graph(self) -> Graph:
        """Return the graph as traced."""
        if self._traced is None:
            if self._outputs is None:
                with self:
                    result = self.define_graph()
                self._outputs = tuple(_output_edges(result if isinstance(result, (tuple, list)) else (result,)))
            sinks = tuple(dict.fromkeys([*self._sinks, *(node for node in self._made if node.preserve)]))
            self._traced = Graph(self._outputs, sinks)
        return self._traced

    def build(self) -> None:
        """Check the graph and make it ready to run. Done by the first run where it was not done before."""
        with self._lock:
            if self._built is None:
                self._built = building.build(
                    self._graph(), self._options, self._seed, self._name, self._state_for_build()
                )
                self._restoring = None
                _engines.add(self._built.engine)
                weakref.finalize(self, self._built.engine.close, wait=False)

    def _engine(self) -> Engine:
        if self._closed:
            raise PipelineStateError(
                "the pipeline has been closed.", line=self._line, hint="Build it anew to run it again."
            )
        if self._refusal is not None:
            raise self._refusal
        if self._built is None:
            self.build()
        assert self._built is not None, "dalify bug: build did not build"
        return self._built.engine

    # -- running
    # -------------------------------------------------------------------------------------------------------------

    def run(self, cuda_stream: Any = None, /, **inputs: Any) -> tuple[TensorList, ...]:
        """Return the outputs of the next iteration, and begin further ones ahead.

        Args:
            cuda_stream: accepted; outputs are ready on torch's current stream.
            inputs: data for external sources, by their names; then nothing is prepared ahead.

        Raises:
            StopIteration: a source is at its end; until ``reset``.
            Exception: an error of this iteration. The pipeline stays usable: the next run gives the next iteration.
        """
        with self._lock:
            self._enter_api(PipelineAPIType.BASIC)
            if inputs:
                self._feed_inputs(inputs)
            self._schedule_ahead()
            return self._collect()

    def _feed_inputs(self, inputs: Mapping[str, Any]) -> None:
        if self._engine().scheduled:
            # Data given now would come out some batches later.
            raise PipelineStateError(
                "run(name=data) cannot follow batches that are under way already.",
                hint="Feed every external_source of the pipeline by hand, or make it with prefetch_queue_depth=1.",
            )
        for name, data in inputs.items():
            self.feed_input(name, data)

    def _schedule_ahead(self) -> None:
        """Schedule until so many batches are under way as the prefetch depth says, or the data end."""
        engine = self._engine()
        while engine.scheduled < self._options.depth and not self._at_end:
            if engine.scheduled and self._is_starved():
                return
            self._schedule_one()

    def _is_starved(self) -> bool:
        """Tell whether data fed by hand ran out: then no further batch can be begun ahead."""
        externals = self._engine().feeds.externals
        return any(feed.source is None and not feed.fed_count and not feed.repeats for feed in externals)

    def _schedule_one(self) -> None:
        try:
            if type(self).iter_setup is not Pipeline.iter_setup:
                self.iter_setup()
            self._engine().schedule()
        except StopIteration:
            self._at_end = True

    def _collect(self) -> tuple[TensorList, ...]:
        engine = self._engine()
        if not engine.scheduled and self._at_end:
            raise StopIteration
        outputs = engine.collect()
        self._check_outputs(outputs)
        return tuple(tensor_list(batch) for batch in outputs)

    def _check_outputs(self, outputs: tuple[Batch, ...]) -> None:
        options = self._options
        if options.output_dtype is None and options.output_ndim is None and options.output_layout is None:
            return
        for index, batch in enumerate(outputs):
            for what, found, kind in (
                ("dtype", batch.dtype, DTypeError),
                ("ndim", batch.ndim, ShapeError),
                ("layout", batch.layout, LayoutError),
            ):
                wanted = options.expected(what, index)
                if wanted is not None and wanted != found:
                    raise kind(
                        f"output {index} has the {what} {_shown(found)}, but output_{what} says {_shown(wanted)}.",
                        line=self._line,
                    )

    def schedule_run(self) -> None:
        """Begin an iteration, without waiting for it."""
        with self._lock:
            self._enter_api(PipelineAPIType.SCHEDULED)
            if self._at_end:
                return
            self._schedule_one()

    def share_outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Wait for the oldest scheduled iteration and return its outputs.

        Args:
            cuda_stream: accepted; outputs are ready on torch's current stream.

        Raises:
            StopIteration: nothing is scheduled, since a source is at its end.
        """
        with self._lock:
            self._enter_api(PipelineAPIType.SCHEDULED)
            self._shared = self._collect()
            return self._shared

    def release_outputs(self) -> None:
        """Let go of what ``share_outputs`` returned last. Memory is used again only when nobody holds it any more."""
        self._shared = None

    def outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Return the outputs of the oldest scheduled iteration and let go of those before."""
        self.release_outputs()
        return self.share_outputs(cuda_stream)

    @property
    def output_stream(self) -> None:
        """Outputs are ready on torch's current stream; there is no other to wait for."""
        return None

    def __iter__(self) -> Iterator[tuple[TensorList, ...]]:
        """Yield batches until the data end, beginning anew where they had ended."""
        if self._at_end:
            self.reset()
        return self

    def __next__(self) -> tuple[TensorList, ...]:
        """Return the outputs of the next iteration."""
        return self.run()

    def _enter_api(self, api: PipelineAPIType) -> None:
        if self._checks_api and self._api is not None and api is not self._api:
            raise PipelineStateError(
                "this pipeline is run in two ways that cannot be mixed: "
                f"{_API_NAMES[self._api]} before, {_API_NAMES[api]} now.",
                hint="Use one of them, or call pipe.enable_api_check(False) if you know the order in which "
                "batches come out.",
            )
        self._api = api

    def enable_api_check(self, enable: bool) -> None:
        """Switch the refusal of mixed ways to run on or off."""
        self._checks_api = enable

    # -- sources, epochs
    # -----------------------------------------------------------------------------------------------------

    def feed_input(
        self,
        data_node: str | DataNode,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """Give a batch to an external source without source.

        Args:
            data_node: its node or its name.
            data: an array with a leading sample axis, or a list of samples.
            layout: of the samples.
            cuda_stream: accepted.
            use_copy_kernel: accepted.

        Raises:
            PipelineStateError: there is no such external source, or it has a source of its own.
        """
        for feed in self._engine().feeds.externals:
            if isinstance(data_node, DataNode):
                if feed.node.number != data_node.edge.node.number:
                    continue
            elif feed.name != data_node:
                continue
            feed.feed(data, layout)
            return
        names = [feed.name for feed in self._engine().feeds.externals if feed.name]
        known = f"It has: {', '.join(names)}." if names else "Give the external_source a name."
        raise PipelineStateError(
            f"the pipeline has no external_source {data_node!r}.{suggestion(str(data_node), names)}", hint=known
        )

    def input_feed_count(self, name: str) -> int:
        """Return how many batches have to be fed before the first run gives a result."""
        return 1

    def reset(self) -> None:
        """Begin the next epoch of all external sources, wherever the last one stands.

        Their batches under way are dropped.

        DALI ignores a reset before the end of the data; here it takes effect. Readers have no end: they go on where
        they are.
        """
        with self._lock:
            engine = self._engine()
            engine.discard()
            for feed in engine.feeds.externals:
                feed.reset()
            self._at_end = False
            self._shared = None

    def start_epoch(self, epoch: int = 0) -> None:
        """Begin an epoch at its first sample, wherever the last one stands; batches under way are dropped.

        Args:
            epoch: number of the readers' epoch: it decides on order and shard. External sources begin their next epoch.
        """
        with self._lock:
            self._engine().start_epoch(epoch)
            self._at_end = False
            self._iterator_state = None
            self._shared = None

    @property
    def is_at_end(self) -> bool:
        """Whether a source is at its end and nothing is under way: nothing comes until ``reset``."""
        return self._at_end and not self._engine().scheduled

    @property
    def has_run(self) -> bool:
        """Whether a batch was asked for, by any of the ways to run."""
        return self._api is not None

    @property
    def has_endless_data(self) -> bool:
        """Whether no external source can end the data.

        Only readers and generators of random numbers feed the pipeline.
        """
        return not self._engine().feeds.externals

    def prepare(self) -> None:
        """Begin batches ahead, so that the first one is ready sooner; without data for that, nothing happens."""
        with self._lock:
            if not self._is_starved():
                self._schedule_ahead()

    def next_outputs(self) -> tuple[TensorList, ...]:
        """Return the outputs of the next iteration, for an iterator; it may be mixed with the other ways to run.

        Raises:
            StopIteration: a source is at its end; until ``reset``.
        """
        with self._lock:
            self._api = PipelineAPIType.ITERATOR if self._api is None else self._api
            self._schedule_ahead()
            return self._collect()

    def empty(self) -> bool:
        """Tell whether no batch is under way."""
        return self._built is None or self._closed or not self._engine().scheduled

    def epoch_size(self, name: str | None = None) -> int | dict[str, int]:
        """Return the number of samples of a reader, or of all named readers."""
        meta = self.reader_meta(name)
        if name is not None:
            return meta["epoch_size"]
        return {key: value["epoch_size"] for key, value in meta.items()}

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Return sizes and sharding of a reader, or of all readers by name.

        Raises:
            PipelineStateError: there is no reader of that name.
        """
        found = {feed.node.label: feed.sampler.options.meta() for feed in self._engine().feeds.readers.values()}
        if name is None:
            return found
        if name not in found:
            raise PipelineStateError(
                f"the pipeline has no reader {name!r}.{suggestion(name, found)}",
                hint=f"Its readers are: {', '.join(found) or 'none'}. Name one with fn.readers.file(..., "
                "name='Reader').",
            )
        return found[name]

    # -- looking inside, writing down
    # ----------------------------------------------------------------------------------------

    def explain(self) -> str:
        """Return what each pass did to the graph and why, with the user's lines.

        Pruned, folded, merged, split, placed, copied.
        """
        self.build()
        assert self._built is not None, "dalify bug: build did not build"
        needed = set(self._graph().nodes())
        pruned = [node for node in self._made if node not in needed]
        lines = [f"  - {node!r} is not needed by any output" for node in pruned]
        text = str(self._built.report)
        head, _, rest = text.partition("\n")
        return "\n".join([f"{len(needed) + len(pruned)} nodes were traced", head, *lines, *([rest] if rest else [])])

    def save_graph_to_dot_file(self, filename: str | PathLike[str], **_: Any) -> None:
        """Write the graph, as the user defined it, in graphviz' language.

        Args:
            filename: where to.
        """
        Path(filename).write_text(to_dot(self._graph()))

    def save_graph_to_svg_file(self, filename: str | PathLike[str]) -> None:
        """Draw the graph, as the user defined it; no other program is needed.

        Args:
            filename: where to.
        """
        Path(filename).write_text(to_svg(self._graph()))

    def _repr_svg_(self) -> str:
        """Show the graph in a notebook."""
        return to_svg(self._graph())

    def serialize(self, define_graph: Any = None, filename: str | PathLike[str] | None = None) -> bytes:
        """Return graph and main arguments as JSON, which ``deserialize`` reads without executing anything.

        Args:
            define_graph: accepted for old programs; a function that returns the outputs.
            filename: where to write the text as well.

        Raises:
            SerializationError: the graph holds Python functions.
        """
        if define_graph is not None:
            with self:
                self.set_outputs(*define_graph())
        options = self._options
        kept = {
            name: getattr(options, name)
            for name in ("batch_size", "num_threads", "device_id", "exec_pipelined", "exec_async")
        }
        text = dumps({**to_json(self._graph()), "options": {**kept, "seed": options.seed}})
        if filename is not None:
            Path(filename).write_bytes(text)
        return text

    @classmethod
    def deserialize(
        cls, serialized_pipeline: bytes | str | None = None, filename: str | PathLike[str] | None = None, **options: Any
    ) -> Pipeline:
        """Return the pipeline that ``serialize`` wrote.

        Args:
            serialized_pipeline: the text; or
            filename: the file that it is in.
            options: arguments of ``Pipeline`` that replace those in the text.

        Raises:
            SerializationError: not a pipeline's text, or damaged.
        """
        if (serialized_pipeline is None) == (filename is None):
            raise ArgumentTypeError(
                "give either the serialised pipeline or the name of its file.", line=SourceLine.capture()
            )
        data = loads(serialized_pipeline if serialized_pipeline is not None else Path(filename or "").read_bytes())
        graph = from_json(data)
        given = {name: value for name, value in options.items() if value is not None}
        pipe = cls(**{**data.get("options", {}), **given})
        pipe._outputs, pipe._traced = graph.outputs, graph
        return pipe

    @classmethod
    def deserialize_and_build(cls, serialized_pipeline: bytes | str) -> Pipeline:
        """Return the pipeline that ``serialize`` wrote, built."""
        pipe = cls.deserialize(serialized_pipeline)
        pipe.build()
        return pipe

    # -- facts
    # ---------------------------------------------------------------------------------------------------------------

    @property
    def max_batch_size(self) -> int:
        """Most samples in a batch."""
        return self._options.batch_size

    @property
    def batch_size(self) -> int:
        """Old name of ``max_batch_size``."""
        warn_deprecated("Pipeline.batch_size is now called max_batch_size.")
        return self._options.batch_size

    @property
    def num_threads(self) -> int:
        """Number of worker threads."""
        return self._options.num_threads

    @property
    def device_id(self) -> int | None:
        """Number of the accelerator."""
        return self._options.device_id

    @property
    def seed(self) -> int:
        """What decides all random numbers; drawn by chance where it was not given."""
        return self._seed

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self._graph().outputs)

    @property
    def prefetch_queue_depth(self) -> Any:
        """Batches under way at once, as given."""
        return self._options.prefetch_queue_depth

    @property
    def exec_pipelined(self) -> bool:
        """As given."""
        return self._options.exec_pipelined

    @property
    def exec_async(self) -> bool:
        """As given."""
        return self._options.exec_async

    @property
    def exec_dynamic(self) -> bool:
        """Memory and copies are always dynamic."""
        return True

    @property
    def py_num_workers(self) -> int:
        """Worker processes of parallel sources."""
        return self._options.py_num_workers

    @property
    def py_start_method(self) -> str:
        """How worker processes are started."""
        return self._options.py_start_method

    def output_dtype(self) -> list[Any]:
        """Return the expected element type of each output; None for any."""
        return [self._options.expected("dtype", index) for index in range(self.num_outputs)]

    def output_ndim(self) -> list[Any]:
        """Return the expected number of dimensions of each output; None for any."""
        return [self._options.expected("ndim", index) for index in range(self.num_outputs)]

    def output_layout(self) -> list[Any]:
        """Return the expected layout of each output; None for any."""
        return [self._options.expected("layout", index) for index in range(self.num_outputs)]

    def start_py_workers(self) -> None:
        """Start the worker processes of parallel sources now, before anything makes a fork unsafe."""
        self.build()

    def close(self) -> None:
        """End the threads and worker processes; the pipeline cannot run afterwards."""
        self._closed = True
        if self._built is not None:
            self._built.engine.close()

    def __repr__(self) -> str:
        """Return size, threads and number of outputs."""
        options = self._options
        return f"<{type(self).__name__} batch_size={options.batch_size} num_threads={options.num_threads}>"


_API_NAMES = {
    PipelineAPIType.BASIC: "run()",
    PipelineAPIType.SCHEDULED: "schedule_run() and share_outputs()",
    PipelineAPIType.ITERATOR: "an iterator of a plugin",
}


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def _output_edges(values: tuple[Any, ...] | list[Any]) -> Iterator[Edge]:
    for index, value in enumerate(values):
        if isinstance(value, Expression):
            yield value.node().edge
        elif isinstance(value, (tuple, list)) and any(isinstance(item, DataNode) for item in value):
            raise GraphError(
                f"output {index} of the pipeline is a {type(value).__name__} with graph values in it; an output "
                "must be a single value.",
                line=SourceLine.capture(),
                hint="Unpack it with a star: return (images, *boxes).",
            )
        elif is_promotable(value):
            yield constant(value).edge
        elif value is None and len(values) == 1:
            return
        else:
            raise ArgumentTypeError(
                f"output {index} of the pipeline is of type {type(value).__name__}; it must be a graph node, a "
                "number or an array.",
                line=SourceLine.capture(),
                hint="Return what the functions of dalify.fn returned.",
            )
