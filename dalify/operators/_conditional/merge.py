"""Where the two branches of a condition come together again."""

from __future__ import annotations

from dalify.data.agreement import check_agreement
from dalify.registry import Spec, operator


@operator
def merge(predicate: Spec, if_true: Spec, if_false: Spec, /, *, variable: str = "", lines: object = None) -> Spec:
    """Put the samples of two branches together in their original order.

    Args:
        predicate: one boolean or number per sample of the whole.
        if_true: the samples whose predicate is true.
        if_false: the others.
        variable: name in the user's code, for messages.
        lines: where the two values were defined.

    Raises:
        DivergentBranchesError: the values differ in element type, number of dimensions or layout.
    """
    check_agreement(if_true, if_false, variable, lines)
    return if_true.replace(shape=None)
