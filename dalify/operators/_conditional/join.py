"""Join the samples of several branches."""

from __future__ import annotations

from itertools import pairwise

from dalify.data.agreement import check_agreement, check_index
from dalify.registry import Spec, structural


@structural
def join(index: Spec, /, *sides: Spec) -> Spec:
    """Join the samples of several branches in their original order.

    Args:
        index: one integer per sample of the batch: the number of its branch.
        sides: the samples of branch 0, 1, 2 ….

    Raises:
        ShapeError: the index is not a scalar.
        DTypeError: the index is not an integer.
        DivergentBranchesError: the values differ in element type, number of dimensions or layout.
    """
    check_index(index)
    for one, other in pairwise(sides):
        check_agreement(one, other, "", None, ("one", "another"))
    return sides[0].replace(shape=None)
