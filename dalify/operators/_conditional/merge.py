"""Merge the samples of two branches."""

from __future__ import annotations

from dalify.data.agreement import check_agreement
from dalify.registry import Spec, structural


@structural
def merge(predicate: Spec, if_true: Spec, if_false: Spec, /, *, variable: str = "", lines: object = None) -> Spec:
    """Merge the samples of two branches in their original order.

    Args:
        predicate: one boolean or number per sample of the batch.
        if_true: the samples whose predicate is true.
        if_false: the others.
        variable: name in the user's code, for error messages; "and" or "or" for the result of such an expression.
        lines: where the two values were defined.

    Raises:
        DivergentBranchesError: the values differ in element type, number of dimensions or layout.
    """
    check_agreement(if_true, if_false, variable, lines)
    return if_true.replace(shape=None)
