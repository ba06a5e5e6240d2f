"""The samples of one branch of a condition."""

from __future__ import annotations

from dalify.registry import Spec, operator


@operator
def split(x: Spec, predicate: Spec, /, *, taken: bool = True) -> Spec:
    """Keep the samples whose predicate is true (or false).

    Args:
        x: any data.
        predicate: one boolean or number per sample.
        taken: which of the two are kept.

    Returns:
        the kept samples; possibly none.
    """
    return x
