"""Select the samples of one branch of a condition."""

from __future__ import annotations

from dalify.registry import Spec, structural


@structural
def split(x: Spec, predicate: Spec, /, *, taken: int = 1) -> Spec:
    """Keep the samples of one branch: those whose predicate is true, is false, or equals the branch number.

    Args:
        x: any data.
        predicate: one boolean or number per sample; an integer where there are several branches.
        taken: which samples to keep: 1 or 0 of a condition, else the branch number.

    Returns:
        the selected samples, possibly none.
    """
    return x
