"""The graph that the user of a pipeline defines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentTypeError, GraphError
from dalify.base.narrow import is_list_or_tuple
from dalify.base.source_line import SourceLine
from dalify.graph import DataNode, Edge, Graph, Node, constant, is_promotable, recording
from dalify.graph.datanode import Expression
from dalify.pipeline.context import PipelineContext
from dalify.pipeline.current import pop_current, push_current

__all__ = ["GraphDefinition", "output_edges"]


class GraphDefinition:
    """The graph that the user defines.

    Args:
        context: the pipeline, whose ``define_graph`` a subclass may override.
    """

    def __init__(self, context: PipelineContext) -> None:
        self._context = context
        self._nodes: list[Node] = []
        self._sinks: list[Node] = []
        self._outputs: tuple[Edge, ...] | None = None
        self._traced: Graph | None = None
        self._scopes: list[AbstractContextManager[None]] = []

    def begin(self) -> None:
        """Record the nodes that this thread makes, and make the pipeline the current one, until ``end``."""
        scope = recording(self._nodes)
        scope.__enter__()
        self._scopes.append(scope)
        push_current(self._context.pipeline())

    def end(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End what ``begin`` began last; the arguments are those of ``__exit__``."""
        pop_current()
        self._scopes.pop().__exit__(exception_type, exception_value, traceback)

    def set_outputs(self, values: Sequence[Any]) -> None:
        """Set the outputs: what a pipeline function returns.

        Raises:
            GraphError: graph values inside nested lists.
            ArgumentTypeError: a value that cannot be an output.
        """
        self._outputs = tuple(output_edges(values))
        self._traced = None

    def add_sink(self, edge: DataNode) -> None:
        """Keep a node in the graph even if no output needs it."""
        self._sinks.append(edge.edge.node)

    def take(self, graph: Graph) -> None:
        """Use a graph that exists already."""
        self._outputs, self._traced = graph.outputs, graph

    @property
    def is_empty(self) -> bool:
        """Whether no outputs were defined yet."""
        return self._outputs is None

    def graph(self) -> Graph:
        """Return the graph as traced; without outputs, those of ``define_graph``.

        Raises:
            NoGraphError: there are no outputs, and ``define_graph`` is not overridden.
            GraphError: two operators have the same name.
        """
        if self._traced is None:
            if self._outputs is None:
                pipeline = self._context.pipeline()
                with pipeline:
                    result = pipeline.define_graph()
                self._outputs = tuple(output_edges(result if is_list_or_tuple(result) else (result,)))
            sinks = tuple(dict.fromkeys([*self._sinks, *(node for node in self._nodes if node.preserve)]))
            graph = Graph(self._outputs, sinks)
            _check_names(graph)
            self._traced = graph
        return self._traced

    def unused_nodes(self) -> list[Node]:
        """Return the nodes that no output needs."""
        needed = set(self.graph().nodes())
        return [node for node in self._nodes if node not in needed]


def _check_names(graph: Graph) -> None:
    """Check that names are unique: they identify readers, sources and random streams.

    Raises:
        GraphError: two operators have the same name.
    """
    named: dict[str, Node] = {}
    for node in graph.nodes():
        if node.name is not None:
            first = named.setdefault(node.name, node)
            if first is not node:
                raise GraphError(
                    f"two operators have the name {node.name!r}: {first!r} and {node!r}.",
                    line=node.line,
                    hint="Give each a unique name.",
                )


def output_edges(values: Sequence[Any]) -> Iterator[Edge]:
    """Yield the return values of a pipeline function as edges of the graph.

    Raises:
        GraphError: graph values inside nested lists.
        ArgumentTypeError: a value that cannot be an output.
    """
    for index, value in enumerate(values):
        if isinstance(value, Expression):
            yield value.node().edge
        elif is_list_or_tuple(value) and any(isinstance(item, DataNode) for item in value):
            raise GraphError(
                f"output {index} of the pipeline is a {type(value).__name__} that contains graph values; an output "
                "must be a single value.",
                line=SourceLine.capture(),
                hint="Unpack it with a star: return (images, *boxes).",
            )
        elif is_promotable(value):
            yield constant(value).edge
        elif is_list_or_tuple(value) and not value:
            yield constant(np.zeros(0, np.float32)).edge
        elif value is None and len(values) == 1:
            return
        else:
            raise ArgumentTypeError(
                f"output {index} of the pipeline is of type {type(value).__name__}; it must be a graph node, a "
                "number or an array.",
                line=SourceLine.capture(),
                hint="Return the results of dalify.fn functions.",
            )
