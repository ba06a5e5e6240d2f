"""Applies the rule of every operator when the graph is built, to detect errors before the first run."""

from __future__ import annotations

from dalify.base.errors import ConditionError
from dalify.base.wording import counted
from dalify.graph import Branch, Graph, edge_spec, node_specs
from dalify.passes.report import Report
from dalify.registry import FedSource


def infer_specs(graph: Graph, report: Report) -> Graph:
    """Return the graph unchanged, after checking dtype, dimensions and layout along all edges.

    Args:
        graph: the traced graph.
        report: a note is added for sources with incomplete specs.

    Raises:
        DalifyError: an operator does not accept its inputs or arguments; with the user's line.
    """
    for node in graph.nodes():
        specs = node_specs(node)
        if node.branch is not None:
            _check_condition(node.branch)
        if isinstance(node.operator, FedSource) and not all(spec.is_known for spec in specs):
            report.note(
                "infer_specs", f"{node!r} declares no dtype and layout (or ndim): its consumers are checked at run time"
            )
    return graph


def _check_condition(branch: Branch) -> None:
    ndim = edge_spec(branch.condition).ndim
    if ndim:
        raise ConditionError(
            f"the condition has {counted(ndim, 'dimension')} per sample; it must be a single value.",
            line=branch.line,
            hint="Take one element, x[0], or reduce it, for instance with fn.reductions.max(x).",
        )
