"""Where the many branches of a choice come together again."""

from __future__ import annotations

from itertools import pairwise

from dalify.base.errors import DTypeError, ShapeError
from dalify.data.agreement import check_agreement
from dalify.registry import Spec, operator


@operator
def join(index: Spec, /, *sides: Spec) -> Spec:
    """Put the samples of many branches together in their original order.

    Args:
        index: one integer per sample of the whole: the number of its branch.
        sides: the samples of branch 0, 1, 2 ….

    Raises:
        ShapeError: the index is no single number.
        DTypeError: the index is no integer.
        DivergentBranchesError: the values differ in element type, number of dimensions or layout.
    """
    if index.ndim:
        raise ShapeError(f"the number of a branch must be a single integer; the value has {index.ndim} dimensions.")
    if index.dtype is not None and not index.dtype.is_integer:
        raise DTypeError(f"the number of a branch must be an integer; the value has elements of type {index.dtype!s}.")
    for one, other in pairwise(sides):
        check_agreement(one, other, "", None, ("one", "another"))
    return sides[0].replace(shape=None)
