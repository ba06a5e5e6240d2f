"""Explaining, drawing and serializing a pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from dalify.base.deprecation import warn_deprecated
from dalify.base.errors import ArgumentTypeError, GraphError, PipelineStateError, SerializationError, suggestion
from dalify.base.optional import LazyModule
from dalify.base.source_line import SourceLine
from dalify.data import Batch, tensor_list
from dalify.graph import Edge, Graph, Node
from dalify.pipeline.facts import Facts
from dalify.pipeline.options import options_from_json

if TYPE_CHECKING:
    import pathlib

    from dalify.executor.plan import Plan
    from dalify.graph import draw, serialize
    from dalify.pipeline.build import Built
else:
    # Imported at first use: few programs draw or serialize a graph.
    pathlib = LazyModule("pathlib", "writing files")
    draw = LazyModule("dalify.graph.draw", "drawing a graph")
    serialize = LazyModule("dalify.graph.serialize", "serializing a graph")

__all__ = ["Inspection"]


class Inspection(Facts):
    """The methods of a pipeline that explain, draw and serialize it."""

    _built: Built | None
    _tapped: Mapping[str, Sequence[Batch]] = MappingProxyType({})

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
        taps = self._options.taps
        if name not in taps:
            raise PipelineStateError(
                f"{name!r} is not tapped.{suggestion(name, taps)}",
                line=SourceLine.capture(),
                hint=f"Create the pipeline with taps=[{name!r}], and the operator with name={name!r}.",
            )
        if name not in self._tapped:
            raise PipelineStateError("no batch has been returned yet.", line=SourceLine.capture())
        values = [tensor_list(batch) for batch in self._tapped[name]]
        return values[0] if len(values) == 1 else tuple(values)

    def _with_taps(self, graph: Graph) -> Graph:
        """Return the graph with the tapped values as additional outputs."""
        edges = [Edge(node, output) for node in self._tapped_nodes(graph) for output in range(node.output_count)]
        return replace(graph, outputs=(*graph.outputs, *edges)) if edges else graph

    def _tapped_nodes(self, graph: Graph) -> list[Node]:
        named = {node.name: node for node in graph.nodes() if node.name is not None}
        for name in self._options.taps:
            node = named.get(name)
            if node is None:
                raise GraphError(
                    f"taps: no output needs an operator with the name {name!r}.{suggestion(name, named)}",
                    line=self._line,
                )
            if node.branch is not None:
                raise GraphError(
                    f"taps: {name!r} is inside a condition and has values for some samples only.",
                    line=node.line,
                    hint="Tap the variable after the condition: fn.copy(images, name=...), or use debug=True.",
                )
        return [named[name] for name in self._options.taps]

    def _without_taps(self, outputs: tuple[Batch, ...]) -> tuple[Batch, ...]:
        """Store the tapped values; return the outputs of the user."""
        if not self._options.taps:
            return outputs
        graph = self._graph()
        rest = iter(outputs[len(graph.outputs) :])
        self._tapped = {
            node.name or "": [next(rest) for _ in range(node.output_count)] for node in self._tapped_nodes(graph)
        }
        return outputs[: len(graph.outputs)]

    def explain(self) -> str:
        """Return what each pass did to the graph and why, with the user's lines.

        Pruned, folded, merged, split, placed and copied nodes; with ``processes``, also which nodes run in them.
        """
        self.build()
        assert self._built is not None, "dalify bug: build did not build"
        needed = set(self._graph().nodes())
        pruned = [node for node in self._made if node not in needed]
        lines = [f"  - {node!r} is not needed by any output" for node in pruned]
        text = str(self._built.report)
        head, _, rest = text.partition("\n")
        engine = self._built.engine
        caches = [f"cache: {step}" for step in engine.plan.caches]
        where = []
        if engine.elsewhere is not None:
            where = [
                f"in {self._options.processes} worker processes: {_nodes_of(engine.elsewhere)}",
                f"in this process: {_nodes_of(engine.plan)}",
            ]
        traced = f"{len(needed) + len(pruned)} nodes were traced"
        kernels = engine.plan.describe_kernels(engine.torch_device)
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
        meter = None if self._built is None else self._built.engine.meter
        return {} if meter is None else meter.statistics()

    def external_source_shm_statistics(self) -> dict[str, list[int]]:
        """Return the sizes of the shared memory slots that workers fill for ``external_source(parallel=True)``.

        Slots grow with the data, so these are the current sizes.

        Returns:
            ``capacities``: bytes of each slot, one batch of one source; ``per_sample_capacities``: the same, divided by
            the batch size. Empty without parallel sources, and before the pipeline is built.
        """
        sizes = [] if self._built is None else self._built.engine.feeds.shared_bytes
        batch_size = self._options.batch_size
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
        pathlib.Path(filename).write_text(draw.to_dot(self._graph()))

    def save_graph_to_svg_file(self, filename: str | PathLike[str]) -> None:
        """Draw the graph, as the user defined it, as SVG; no other program is needed.

        Args:
            filename: path of the file.
        """
        pathlib.Path(filename).write_text(draw.to_svg(self._graph()))

    def _repr_svg_(self) -> str:
        """Show the graph in a notebook."""
        return draw.to_svg(self._graph())

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
        options = self._options
        text = serialize.dumps({**serialize.to_json(self._graph()), "options": options.as_json()})
        if filename is not None:
            pathlib.Path(filename).write_bytes(text)
        return text

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

        No code in the JSON is executed. Its readers can read any file that this process can.

        Args:
            serialized_pipeline: the JSON; or
            filename: path of a file that contains it.
            allow_side_effects: accept operators that write files or run Python code, such as ``fn.dump_image``. Only
                for trusted input.
            options: arguments of ``Pipeline`` that override those in the JSON.

        Raises:
            SerializationError: not a serialized pipeline, damaged, or with an operator that writes files or runs Python
                code.
        """
        if (serialized_pipeline is None) == (filename is None):
            raise ArgumentTypeError("pass either the serialized pipeline or filename.", line=SourceLine.capture())
        data = serialize.loads(
            serialized_pipeline if serialized_pipeline is not None else pathlib.Path(filename or "").read_bytes()
        )
        graph = serialize.from_json(data, allow_side_effects=allow_side_effects)
        saved = data.get("options", {})
        given = {name: value for name, value in options.items() if value is not None}
        pipe = cls(**{**options_from_json(saved), **given})
        pipe._outputs, pipe._traced = graph.outputs, graph
        return pipe

    def __reduce__(self) -> NoReturn:
        """Raise an error: a pipeline cannot be pickled or copied.

        Raises:
            SerializationError: always; the message says what to send instead.
        """
        raise SerializationError(
            "a pipeline cannot be pickled or copied: it owns threads and batches in progress.",
            line=self._line,
            hint="Send the function that creates it and call it in the other process, or send pipe.serialize() and "
            "call Pipeline.deserialize() there. pipe.state_dict() contains the position of the run.",
        )

    def deserialize_and_build(self, serialized_pipeline: bytes | str, *, allow_side_effects: bool = False) -> None:
        """Load the graph of a serialized pipeline and build it with this pipeline's own arguments.

        Args:
            serialized_pipeline: the JSON.
            allow_side_effects: see ``deserialize``.

        Raises:
            PipelineStateError: this pipeline already has a graph.
            SerializationError: see ``deserialize``.
        """
        if self._outputs is not None or self._traced is not None:
            raise PipelineStateError("this pipeline already has a graph.", line=self._line)
        graph = serialize.from_json(serialize.loads(serialized_pipeline), allow_side_effects=allow_side_effects)
        self._outputs, self._traced = graph.outputs, graph
        self.build()


def _nodes_of(plan: Plan) -> str:
    """Describe the user's nodes of a plan."""
    nodes = [step.node for stage in plan.stages for step in stage.steps if not step.node.operator.name.startswith("_")]
    return ", ".join(map(repr, nodes)) or "nothing"
