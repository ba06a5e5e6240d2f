"""``not x`` on graph values."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ConditionError
from dalify.base.wording import counted
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays.joined import joined
from dalify.registry import Spec, operator


@operator
def not_(x: Spec, /) -> Spec:
    """Negate a boolean.

    Args:
        x: one boolean or number per sample.

    Returns:
        BOOL, true where x is false or zero.

    Raises:
        ConditionError: x is not a scalar per sample.
    """
    if x.ndim:
        raise ConditionError(
            f"`not` requires a scalar per sample; the operand has {counted(x.ndim, 'dimension')}.",
            hint="Reduce it first, for instance with fn.reductions.max(x), or negate element by element with x == 0.",
        )
    return Spec(DALIDataType.BOOL, 0, "", () if x.shape is not None else None)


@not_.cpu_samples
def _(out: Samples, x: Samples) -> None:
    assert out.dense is not None, "dalify bug: scalars of different shapes"
    np.logical_not(joined(x), out=out.dense[:, None])
