"""Evaluators: what happens to the calls of operators.

One context variable holds the active evaluator. Pipelines activate `Tracing`; ``dalify.immediate`` defines those of
lazy mode and debug mode. Without any, calls of ``dalify.eager`` are computed immediately.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from dalify.base.context_stack import Assigned
from dalify.graph.node import Edge, Node
from dalify.registry import Operator

Compute = Callable[[Operator, Sequence[Any], Mapping[str, Any]], Any]


class Evaluator:
    """Handles calls of operators. The evaluator around it handles the calls that a subclass does not handle.

    Attributes:
        outer: the evaluator that was active before; None without one.
    """

    outer: Evaluator | None = None

    def receive_node(self, node: Node) -> None:
        """Receive a new node of a call on graph values."""
        if self.outer is not None:
            self.outer.receive_node(node)

    def call(self, operator: Operator, inputs: Sequence[Any], given: Mapping[str, Any], compute: Compute) -> Any:
        """Return the results of a call on data."""
        return (
            compute(operator, inputs, given)
            if self.outer is None
            else self.outer.call(operator, inputs, given, compute)
        )

    def value(self, edge: Edge) -> tuple[bool, Any]:
        """Return whether a graph value is known, and the value: a tensor list, or None without samples."""
        return (False, None) if self.outer is None else self.outer.value(edge)

    def source_of(self, samples: Sequence[Any]) -> Edge | None:
        """Return a graph value that consists of the samples of a batch; None if graph values have no data."""
        return None if self.outer is None else self.outer.source_of(samples)

    @property
    def is_lazy(self) -> bool:
        """Whether calls on data are deferred."""
        return self.outer is not None and self.outer.is_lazy


class Immediate(Evaluator):
    """Computes calls on data immediately, also inside lazy mode."""

    def call(self, operator: Operator, inputs: Sequence[Any], given: Mapping[str, Any], compute: Compute) -> Any:
        """Return the results of a call on data."""
        return compute(operator, inputs, given)

    @property
    def is_lazy(self) -> bool:
        """Whether calls on data are deferred: no."""
        return False


class Tracing(Evaluator):
    """Collects the nodes of a pipeline."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes

    def receive_node(self, node: Node) -> None:
        """Append a new node."""
        self._nodes.append(node)


_OUTERMOST: Evaluator = Immediate()
_ACTIVE: ContextVar[Evaluator] = ContextVar("dalify_evaluator", default=_OUTERMOST)
current_evaluator = _ACTIVE.get


@contextmanager
def evaluating(evaluator: Evaluator) -> Generator[None]:
    """Make an evaluator active inside the ``with`` block. It must not be active already."""
    evaluator.outer = _ACTIVE.get()
    with Assigned(_ACTIVE, evaluator):
        yield


def recording(nodes: list[Node]) -> AbstractContextManager[None]:
    """Append all nodes that are created inside the ``with`` block to ``nodes``."""
    return evaluating(Tracing(nodes))
