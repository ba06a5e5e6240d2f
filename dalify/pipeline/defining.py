"""The base class of pipelines that defines the graph."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from dalify.base.errors import ArgumentTypeError, GraphError, NoGraphError, PipelineStateError
from dalify.base.source_line import SourceLine
from dalify.graph import DataNode, Edge, Graph, Node, Role, constant, is_promotable, recording
from dalify.graph.datanode import Expression
from dalify.pipeline.current import pop_current, push_current, top
from dalify.pipeline.options import PipelineOptions

if TYPE_CHECKING:
    from dalify.pipeline.pipeline import Pipeline

__all__ = ["GraphDefinition", "output_edges"]


class GraphDefinition:
    """The options of a pipeline and the graph that the user defines.

    Args:
        options: options of the pipeline.
        line: the user's line that created it.
    """

    _built: Any = None  # set by `build`

    def __init__(self, options: PipelineOptions, line: SourceLine | None) -> None:
        self._options = options
        self._line = line
        self._seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(8)) >> 1
        self._made: list[Node] = []
        self._sinks: list[Node] = []
        self._outputs: tuple[Edge, ...] | None = None
        self._traced: Graph | None = None
        self._tokens: list[Any] = []

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
        scope = recording(self._made)
        scope.__enter__()
        self._tokens.append(scope)
        push_current(cast("Pipeline", self))
        return self

    def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
        """End the definition."""
        pop_current()
        self._tokens.pop().__exit__(exception_type, exception_value, traceback)

    def define_graph(self) -> Any:
        """Return the outputs; subclasses override it.

        Raises:
            NoGraphError: not overridden, and no outputs were set.
        """
        raise NoGraphError(
            "the pipeline has no outputs.",
            line=self._line,
            hint="Use @pipeline_def, call pipe.set_outputs(...), or override define_graph() in a subclass.",
        )

    def iter_setup(self) -> None:
        """Feed data for the next iteration; subclasses of old programs override it and call ``feed_input``."""

    def set_outputs(self, *outputs: Any) -> None:
        """Set the outputs of the graph: nodes, numbers, arrays, or nested tuples and lists of these at the top level.

        Raises:
            PipelineStateError: the pipeline is already built.
        """
        if self._built is not None:
            raise PipelineStateError(
                "the outputs of a pipeline cannot be changed after it is built.", line=SourceLine.capture()
            )
        self._outputs = tuple(output_edges(outputs))
        self._traced = None

    def add_sink(self, edge: DataNode) -> None:
        """Keep a node in the graph even if no output needs it."""
        self._sinks.append(edge.edge.node)

    def _graph(self) -> Graph:
        """Return the graph as traced."""
        if self._traced is None:
            if self._outputs is None:
                with self:
                    result = self.define_graph()
                self._outputs = tuple(output_edges(result if isinstance(result, (tuple, list)) else (result,)))
            sinks = tuple(dict.fromkeys([*self._sinks, *(node for node in self._made if node.preserve)]))
            graph = Graph(self._outputs, sinks)
            _check_names(graph)
            self._traced = graph
        return self._traced

    def external_sources(self) -> tuple[Node, ...]:
        """Return the nodes of the graph that take data from outside."""
        return tuple(node for node in self._graph().nodes() if node.role is Role.FED)

    if TYPE_CHECKING:  # defined by the classes that use the mixin

        def build(self) -> None:
            """Check and build the graph."""
            ...


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


def output_edges(values: tuple[Any, ...] | list[Any]) -> Iterator[Edge]:
    """Yield the return values of a pipeline function as edges of the graph.

    Raises:
        GraphError: graph values inside nested lists.
        ArgumentTypeError: a value that cannot be an output.
    """
    for index, value in enumerate(values):
        if isinstance(value, Expression):
            yield value.node().edge
        elif isinstance(value, (tuple, list)) and any(isinstance(item, DataNode) for item in value):
            raise GraphError(
                f"output {index} of the pipeline is a {type(value).__name__} that contains graph values; an output "
                "must be a single value.",
                line=SourceLine.capture(),
                hint="Unpack it with a star: return (images, *boxes).",
            )
        elif is_promotable(value):
            yield constant(value).edge
        elif isinstance(value, (tuple, list)) and not value:
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
