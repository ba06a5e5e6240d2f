"""The methods of a pipeline that describe it, and its serialization."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.deprecation import warn_deprecated
from dalify.base.errors import PipelineStateError, suggestion
from dalify.base.optional import LazyModule
from dalify.graph import FedSource, Graph, Node
from dalify.pipeline.parts import Parts

if TYPE_CHECKING:
    import pathlib

    from dalify.executor.options import PipelineOptions
    from dalify.executor.plan import Plan
    from dalify.executor.recovery import BadSample
    from dalify.graph import draw, serialize
else:
    # Imported at first use: few programs draw or serialize a graph.
    pathlib = LazyModule("pathlib", "writing files")
    draw = LazyModule("dalify.graph.draw", "drawing a graph")
    serialize = LazyModule("dalify.graph.serialize", "serializing a graph")

__all__ = ["Inspection", "deserialized", "serialized"]


class Inspection:
    """The methods of a pipeline that describe its graph, its readers, and what has run; they change nothing."""

    _parts: Parts

    # -- readers and samples

    def external_sources(self) -> tuple[Node, ...]:
        """Return the nodes of the graph that take data from outside."""
        return tuple(node for node in self._parts.builder.graph().nodes() if isinstance(node.operator, FedSource))

    @property
    def has_endless_data(self) -> bool:
        """Whether the data are endless: there is no external source, only readers and random operators."""
        return not self._parts.builder.externals()

    @property
    def has_only_sources(self) -> bool:
        """Whether the pipeline has no reader."""
        return not self._parts.builder.readers()

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
        self._parts.builder.find_sources()
        found = {feed.node.label: feed.sampler.options.meta() for feed in self._parts.builder.readers()}
        if name is None:
            return found
        if name not in found:
            raise PipelineStateError(
                f"the pipeline has no reader {name!r}.{suggestion(name, found)}",
                hint=f"Existing readers: {', '.join(found) or 'none'}. Name a reader with fn.readers.file(..., "
                "name='Reader').",
            )
        return found[name]

    def remaining_of_epochs(self, name: str) -> dict[int, int]:
        """Return the number of samples of all shards that are left of epochs begun with another number of shards.

        Args:
            name: name of the reader.
        """
        for feed in self._parts.builder.readers():
            if feed.node.label == name:
                return feed.sampler.left()
        return {}

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
        found = [sample for engine in self._parts.builder.engine().engines for sample in engine.recovery.bad_samples]
        return [sample for sample in found if epoch is None or sample.epoch == epoch]

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

    # -- graph and memory

    def explain(self) -> str:
        """Return what each pass did to the graph and why, with the user's lines.

        Pruned, folded, merged, split, placed and copied nodes; with ``processes``, also which nodes run in them.
        """
        parts = self._parts
        parts.context.pipeline().build()
        built = parts.builder.built
        assert built is not None, "dalify bug: build did not build"
        pruned = parts.definition.unused_nodes()
        count = sum(1 for _ in parts.builder.graph().nodes()) + len(pruned)
        lines = [f"  - {node!r} is not needed by any output" for node in pruned]
        head, _, rest = str(built.report).partition("\n")
        engine = built.engine
        caches = [f"cache: {step}" for step in (*engine.plan.caches, *engine.plan.device_caches)]
        where = []
        if engine.remote is not None:
            where = [
                f"in {parts.context.options.processes} worker processes: {_nodes_of(engine.remote.plan)}",
                f"in this process: {_nodes_of(engine.plan)}",
            ]
        kernels = engine.plan.describe_kernels(engine.torch_device)
        traced = f"{count} nodes were traced"
        return "\n".join([traced, head, *lines, *([rest] if rest else []), *where, *caches, *kernels])

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
        built = self._parts.builder.built
        meter = None if built is None else built.engine.meter
        return {} if meter is None else meter.statistics()

    def external_source_shm_statistics(self) -> dict[str, list[int]]:
        """Return the sizes of the shared memory slots that workers fill for ``external_source(parallel=True)``.

        Slots grow with the data, so these are the current sizes.

        Returns:
            ``capacities``: bytes of each slot, one batch of one source; ``per_sample_capacities``: the same, divided by
            the batch size. Empty without parallel sources, and before the pipeline is built.
        """
        built = self._parts.builder.built
        sizes = [] if built is None else built.engine.feeds.shared_bytes
        batch_size = self._parts.context.options.batch_size
        return {"capacities": sizes, "per_sample_capacities": [-(-size // batch_size) for size in sizes]}

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
        pathlib.Path(filename).write_text(draw.to_dot(self._parts.builder.graph()))

    def save_graph_to_svg_file(self, filename: str | PathLike[str]) -> None:
        """Draw the graph, as the user defined it, as SVG; no other program is needed.

        Args:
            filename: path of the file.
        """
        pathlib.Path(filename).write_text(self._repr_svg_())

    def _repr_svg_(self) -> str:
        """Show the graph in a notebook."""
        return draw.to_svg(self._parts.builder.graph())


def serialized(graph: Graph, options: PipelineOptions, filename: str | PathLike[str] | None) -> bytes:
    """Return a graph and the main options as JSON, and write them to a file if there is a name of one.

    Raises:
        SerializationError: the graph contains Python functions.
    """
    text = serialize.dumps({**serialize.to_json(graph), "options": options.as_json()})
    if filename is not None:
        pathlib.Path(filename).write_bytes(text)
    return text


def deserialized(
    text: bytes | str | None, filename: str | PathLike[str] | None = None, *, allow_side_effects: bool
) -> tuple[Graph, Any]:
    """Return the graph and the options in a serialized pipeline; ``options_from_json`` reads the options.

    Args:
        text: the JSON; None: that of a file.
        filename: path of the file.
        allow_side_effects: accept operators that write files or run Python code.

    Raises:
        SerializationError: damaged, or with such an operator.
    """
    data = serialize.loads(text if text is not None else pathlib.Path(filename or "").read_bytes())
    graph = serialize.from_json(data, allow_side_effects=allow_side_effects)
    return graph, data.get("options", {})


def _nodes_of(plan: Plan) -> str:
    """Describe the user's nodes of a plan."""
    nodes = [step.node for stage in plan.stages for step in stage.steps if not step.node.operator.name.startswith("_")]
    return ", ".join(map(repr, nodes)) or "nothing"
