"""Values of operators that a pipeline keeps in addition to its outputs."""

from __future__ import annotations

from dataclasses import replace

from dalify.base.errors import GraphError, PipelineStateError, suggestion
from dalify.data import Batch
from dalify.graph import Edge, Graph, Node
from dalify.pipeline.context import PipelineContext


class Taps:
    """The values of named operators for the last returned batch.

    Args:
        context: the pipeline; its options contain the names of the operators.
    """

    def __init__(self, context: PipelineContext) -> None:
        self._names = context.options.taps
        self._line = context.line
        self._values: dict[str, list[Batch]] = {}

    def value(self, name: str) -> list[Batch]:
        """Return the outputs of an operator.

        Raises:
            PipelineStateError: no tapped operator has this name, or no batch has been returned yet.
        """
        if name not in self._names:
            raise PipelineStateError.here(
                f"{name!r} is not tapped.{suggestion(name, self._names)}",
                hint=f"Create the pipeline with taps=[{name!r}], and the operator with name={name!r}.",
            )
        if name not in self._values:
            raise PipelineStateError.here("no batch has been returned yet.")
        return self._values[name]

    def added_to(self, graph: Graph) -> Graph:
        """Return the graph with the values as additional outputs.

        Raises:
            GraphError: no operator has this name, or the operator is inside a condition.
        """
        edges = [Edge(node, output) for node in self._nodes(graph) for output in range(node.output_count)]
        return replace(graph, outputs=(*graph.outputs, *edges)) if edges else graph

    def keep(self, graph: Graph, outputs: tuple[Batch, ...]) -> tuple[Batch, ...]:
        """Keep the values of a batch, and return the outputs for the user.

        Args:
            graph: the graph without additional outputs.
            outputs: all outputs of the engine.
        """
        rest = iter(outputs[len(graph.outputs) :])
        self._values = {node.name or "": [next(rest) for _ in range(node.output_count)] for node in self._nodes(graph)}
        return outputs[: len(graph.outputs)]

    def _nodes(self, graph: Graph) -> list[Node]:
        named = {node.name: node for node in graph.nodes() if node.name is not None}
        for name in self._names:
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
        return [named[name] for name in self._names]
