"""The samples of one branch of a condition."""

from __future__ import annotations

from dalify.registry import Spec, operator


@operator
def split(x: Spec, predicate: Spec, /, *, taken: int = 1) -> Spec:
    """Keep the samples of one branch: those whose predicate is true, or false, or the number of the branch.

    Args:
        x: any data.
        predicate: one boolean or number per sample; of a choice, an integer.
        taken: which of the two are kept; of a choice between many, the branch whose number the predicate is.

    Returns:
        the kept samples; possibly none.
    """
    return x
