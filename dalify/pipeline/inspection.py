"""Explains, draws and serializes the graph of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any

from dalify.base.errors import PipelineStateError, suggestion
from dalify.base.optional import LazyModule
from dalify.base.processors import using_device, video_hardware
from dalify.base.whole_files import write_file
from dalify.graph import FedSource, Graph, Node, rule_arguments
from dalify.pipeline.context import PipelineContext
from dalify.pipeline.engine_builder import EngineBuilder
from dalify.pipeline.graph_definition import GraphDefinition

if TYPE_CHECKING:
    import pathlib

    from dalify.executor.plan import Plan
    from dalify.executor.recovery import BadSample
    from dalify.graph import draw, serialize
else:
    # Imported at first use, because few programs draw or serialize a graph.
    pathlib = LazyModule("pathlib", "reading files")
    draw = LazyModule("dalify.graph.draw", "drawing a graph")
    serialize = LazyModule("dalify.graph.serialize", "serializing a graph")

_VIDEOS = "av"  # package that the operators for videos need


class Inspection:
    """Describes a pipeline; the methods of ``Pipeline`` describe the results.

    Args:
        context: the pipeline; a subclass may override its ``build``.
        definition: the graph that the user defines.
        builder: builder of the graph and the engine.
    """

    def __init__(self, context: PipelineContext, definition: GraphDefinition, builder: EngineBuilder) -> None:
        self._context = context
        self._definition = definition
        self._builder = builder

    def explain(self) -> str:
        """Return the changes of each pass to the graph and the reasons; build the graph if necessary."""
        self._context.pipeline().build()
        built = self._builder.built
        assert built is not None, "dalify bug: build did not build"
        pruned = self._definition.unused_nodes()
        count = sum(1 for _ in self._builder.graph().nodes()) + len(pruned)
        lines = [f"  - {node!r} is not needed by any output" for node in pruned]
        head, _, rest = str(built.report).partition("\n")
        engine = built.engine
        caches = [f"cache: {step}" for step in (*engine.plan.caches, *engine.plan.device_caches)]
        where = []
        if engine.remote is not None:
            where = [
                f"in {self._context.options.processes} worker processes: {_nodes_of(engine.remote.plan)}",
                f"in this process: {_nodes_of(engine.plan)}",
            ]
        kernels = engine.plan.describe_kernels(engine.torch_device)
        with using_device(self._context.options.device_id):
            decoders = [*engine.plan.describe_decoders(), *_video_decoders(built.graph.nodes())]
        traced = f"{count} nodes were traced"
        return "\n".join([traced, head, *lines, *([rest] if rest else []), *where, *caches, *decoders, *kernels])

    def reader_meta(self, name: str | None) -> dict[str, Any]:
        """Return sizes and sharding of a reader; for None those of all readers by name.

        Raises:
            PipelineStateError: there is no reader of that name.
        """
        self._builder.find_sources()
        found = {feed.node.label: feed.sampler.options.meta() for feed in self._builder.readers()}
        if name is None:
            return found
        if name not in found:
            raise PipelineStateError(
                f"the pipeline has no reader {name!r}.{suggestion(name, found)}",
                hint=f"Existing readers: {', '.join(found) or 'none'}. Name a reader with fn.readers.file(..., "
                "name='Reader').",
            )
        return found[name]

    def epoch_size(self, name: str | None) -> int | dict[str, int]:
        """Return the number of samples of a reader; for None those of all readers by name."""
        meta = self.reader_meta(name)
        if name is not None:
            return meta["epoch_size_padded"]
        return {key: value["epoch_size_padded"] for key, value in meta.items()}

    def remaining_of_epochs(self, name: str) -> dict[int, int]:
        """Return the number of unread samples of all shards, by epoch, for epochs begun with other shards."""
        for feed in self._builder.readers():
            if feed.node.label == name:
                return feed.sampler.left()
        return {}

    def bad_samples(self, epoch: int | None) -> list[BadSample]:
        """Return the samples of an epoch that could not be read or decoded; for None those of all epochs."""
        found = [sample for engine in self._builder.engine().engines for sample in engine.recovery.bad_samples]
        return [sample for sample in found if epoch is None or sample.epoch == epoch]

    def external_sources(self) -> tuple[Node, ...]:
        """Return the nodes for external data."""
        return tuple(node for node in self._builder.graph().nodes() if isinstance(node.operator, FedSource))

    def executor_statistics(self) -> dict[str, Any]:
        """Return the sizes of the outputs of each operator; empty if they are not measured."""
        meter = None if self._builder.built is None else self._builder.built.engine.meter
        return {} if meter is None else meter.statistics()

    def shared_memory_statistics(self) -> dict[str, list[int]]:
        """Return the sizes of the shared memory slots of parallel sources."""
        sizes = [] if self._builder.built is None else self._builder.built.engine.feeds.shared_bytes
        batch_size = self._context.options.batch_size
        return {"capacities": sizes, "per_sample_capacities": [-(-size // batch_size) for size in sizes]}

    def write_dot(self, filename: str | PathLike[str]) -> None:
        """Write the graph, as the user defined it, in Graphviz' DOT language."""
        write_file(filename, draw.to_dot(self._builder.graph()).encode())

    def svg(self) -> str:
        """Return a drawing of the graph, as the user defined it, as SVG."""
        return draw.to_svg(self._builder.graph())

    def write_svg(self, filename: str | PathLike[str]) -> None:
        """Write the drawing to a file."""
        write_file(filename, self.svg().encode())

    def serialized(self, filename: str | PathLike[str] | None) -> bytes:
        """Return the graph and the main options as JSON, and write them to a file if a name is given.

        Raises:
            SerializationError: the graph contains Python functions.
        """
        graph = serialize.to_json(self._builder.graph())
        text = serialize.dumps({**graph, "options": self._context.options.as_json()})
        if filename is not None:
            write_file(filename, text)
        return text


def deserialized(
    text: bytes | str | None, filename: str | PathLike[str] | None = None, *, allow_side_effects: bool
) -> tuple[Graph, Any]:
    """Return the graph and the options in a serialized pipeline; ``options_from_json`` reads the options.

    Args:
        text: the JSON; None to read it from a file.
        filename: path of the file.
        allow_side_effects: accept operators that write files or run Python code.

    Raises:
        SerializationError: the JSON is damaged, or contains such an operator.
    """
    data = serialize.loads(text if text is not None else pathlib.Path(filename or "").read_bytes())
    graph = serialize.from_json(data, allow_side_effects=allow_side_effects)
    return graph, data.get("options", {})


def _video_decoders(nodes: Iterable[Node]) -> list[str]:
    """Return the video decoder of each operator for videos, as lines for ``explain``."""
    hardware = video_hardware()
    decoder = "the host" if hardware is None else f"{hardware}, or the host what that does not support"
    return [
        f"{node!r}: videos are decoded by {decoder}"
        for node in nodes
        if any(package.__name__ == _VIDEOS for package in node.operator.needed_packages(rule_arguments(node)))
    ]


def _nodes_of(plan: Plan) -> str:
    """Return a list of the user's nodes in a plan as text."""
    nodes = [step.node for stage in plan.stages for step in stage.steps if not step.node.operator.name.startswith("_")]
    return ", ".join(map(repr, dict.fromkeys(nodes))) or "nothing"  # a ParseStep has the node of its decoder
