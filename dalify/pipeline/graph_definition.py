"""The graph that the user of a pipeline defines."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from types import MethodType, TracebackType
from typing import Any

import numpy as np

from dalify import frontend
from dalify.base.errors import ArgumentTypeError, DalifyError, GraphError, NoGraphError
from dalify.base.narrow import is_list_or_tuple
from dalify.base.source_line import SourceLine, is_own
from dalify.graph import DataNode, Edge, Graph, Node, constant, is_promotable, recording
from dalify.graph.datanode import Expression
from dalify.pipeline.context import PipelineContext


class GraphDefinition:
    """The graph that the user defines.

    Args:
        context: the pipeline; a subclass may override its ``define_graph``.
    """

    def __init__(self, context: PipelineContext) -> None:
        self._context = context
        self._nodes: list[Node] = []
        self._sinks: list[Node] = []
        self._outputs: tuple[Edge, ...] | None = None
        self._traced: Graph | None = None
        self._scopes: list[AbstractContextManager[None]] = []

    def begin(self) -> None:
        """Record the nodes that this thread creates, until ``end``."""
        scope = recording(self._nodes)
        scope.__enter__()
        self._scopes.append(scope)

    def end(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the definition that was begun last; see ``__exit__`` for the arguments."""
        self._scopes.pop().__exit__(exception_type, exception_value, traceback)
        if exception_value is not None and not isinstance(exception_value, DalifyError):
            _explain(exception_value, traceback)

    def set_outputs(self, values: Sequence[Any]) -> None:
        """Set the outputs, for instance the return value of a pipeline function.

        Raises:
            GraphError: graph values are in nested lists.
            ArgumentTypeError: a value cannot be an output.
        """
        self._outputs = tuple(output_edges(values))
        self._traced = None

    def add_sink(self, edge: DataNode) -> None:
        """Keep a node in the graph even if no output needs it."""
        self._sinks.append(edge.edge.node)

    def take(self, graph: Graph) -> None:
        """Use an existing graph."""
        self._outputs, self._traced = graph.outputs, graph

    @property
    def is_empty(self) -> bool:
        """Whether no outputs were defined yet."""
        return self._outputs is None

    def graph(self) -> Graph:
        """Return the traced graph; if no outputs were set, ``define_graph`` is called.

        Raises:
            NoGraphError: there are no outputs and no sinks, or ``define_graph`` is not overridden.
            GraphError: two operators have the same name.
        """
        if self._traced is None:
            if self._outputs is None:
                pipeline = self._context.pipeline()
                with pipeline:
                    self._outputs = tuple(output_edges(pipeline.define_graph()))
            sinks = tuple(dict.fromkeys([*self._sinks, *(node for node in self._nodes if node.preserve)]))
            if not self._outputs and not sinks:
                raise self._no_outputs()
            graph = Graph(self._outputs, sinks)
            _check_names(graph)
            self._traced = graph
        return self._traced

    def _no_outputs(self) -> NoGraphError:
        error = NoGraphError(
            "the pipeline has no outputs.", hint="Return them from the pipeline function: return images, labels."
        )
        without = next((node for node in self._nodes if not node.output_count), None)
        if without is not None:
            without.locate(error)
        error.locate(line=SourceLine.of_method(self._context.pipeline().define_graph) or self._context.line)
        return error

    def unused_nodes(self) -> list[Node]:
        """Return the nodes that no output needs."""
        needed = set(self.graph().nodes())
        return [node for node in self._nodes if node not in needed]


# Methods of arrays and tensors, and what does the same with a graph value ``x``.
_INSTEAD = {
    "astype": "fn.cast(x, dtype=types.FLOAT)",
    "clamp": "dalify.math.clamp(x, low, high)",
    "clip": "dalify.math.clamp(x, low, high)",
    "flatten": "fn.reshape(x, shape=[-1])",
    "float": "fn.cast(x, dtype=types.FLOAT)",
    "max": "fn.reductions.max(x)",
    "mean": "fn.reductions.mean(x)",
    "min": "fn.reductions.min(x)",
    "permute": "fn.transpose(x, perm=[2, 0, 1])",
    "reshape": "fn.reshape(x, shape=[-1, 3])",
    "squeeze": "fn.squeeze(x, axes=[0])",
    "std": "fn.reductions.std_dev(x, fn.reductions.mean(x))",
    "sum": "fn.reductions.sum(x)",
    "to": "fn.cast(x, dtype=types.FLOAT) or x.gpu()",
    "transpose": "fn.transpose(x, perm=[2, 0, 1])",
    "unsqueeze": "fn.expand_dims(x, axes=[0])",
}


def _explain(error: BaseException, traceback: TracebackType | None) -> None:
    """Add a note to an error of a library that was called with a graph value, or to the error of ``x.shape[0]``."""
    frame = None
    while traceback is not None:
        frame, traceback = traceback.tb_frame, traceback.tb_next
    if (
        isinstance(error, TypeError)
        and frame is not None
        and "shape" in frame.f_code.co_names
        and "method" in str(error)
    ):
        error.add_note("The shape of a graph value is a method: write x.shape()[0], which is a graph value, too.")
    if isinstance(error, AttributeError) and isinstance(error.obj, DataNode) and error.name in _INSTEAD:
        error.add_note(
            f"A DataNode is a graph value. Instead of x.{error.name}, write {_INSTEAD[error.name]}. fn.python_function "
            "calls a function with the data of each sample."
        )
    elif "DataNode" in str(error) or (
        frame is not None
        and frontend.is_foreign_code(frame.f_code)
        and not is_own(frame.f_code.co_filename)
        and any(isinstance(value, DataNode) for value in frame.f_locals.values())
    ):
        error.add_note(
            "A DataNode is a graph value: it has no data while the pipeline is defined. Use operators of dalify.fn and "
            "functions of dalify.math, or fn.python_function to call a function with the data of each sample."
        )


def _check_names(graph: Graph) -> None:
    """Check that names are unique, because they identify readers, sources and random streams.

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


def returned_values(result: Any) -> Sequence[Any]:
    """Return the outputs that the return value of a pipeline function stands for.

    As in DALI, a list of Python numbers is one constant, also an empty list. Other lists are unpacked like tuples.
    """
    if not is_list_or_tuple(result):
        return (result,)
    is_constant = isinstance(result, list) and all(isinstance(item, (bool, int, float)) for item in result)
    return (result,) if is_constant else result


def output_edges(result: Any) -> Iterator[Edge]:
    """Yield the return values of a pipeline function, or its only one, as edges of the graph.

    Raises:
        GraphError: graph values are in nested lists.
        ArgumentTypeError: a value cannot be an output.
    """
    values = result if is_list_or_tuple(result) else (result,)
    for index, value in enumerate(values):
        if isinstance(value, Expression):
            yield value.node().edge
        elif is_list_or_tuple(value) and any(isinstance(item, DataNode) for item in value):
            raise GraphError.here(
                f"output {index} of the pipeline is a {type(value).__name__} that contains graph values; an output "
                "must be a single value.",
                hint="Unpack it with a star: return (images, *boxes).",
            )
        elif is_promotable(value):
            yield constant(value).edge
        elif is_list_or_tuple(value) and not value:
            yield constant(np.zeros(0, np.float32)).edge
        elif value is None and len(values) == 1:
            return
        else:
            raise ArgumentTypeError.here(
                f"output {index} of the pipeline is of type {type(value).__name__}; it must be a graph value, a "
                "number or an array.",
                hint=_output_hint(value),
            )


def _output_hint(value: object) -> str:
    if isinstance(value, dict):
        return "Return a tuple of its values. The iterators of dalify.plugin name them: output_map=['image', 'label']."
    if inspect.iscoroutine(value) or inspect.isgenerator(value):
        return "Define the function with `def` and `return`, without `async` and `yield`."
    if isinstance(value, MethodType) and isinstance(value.__self__, DataNode):
        return f"Call the method: x.{value.__name__}()."
    return "Return the results of operators of dalify.fn."
