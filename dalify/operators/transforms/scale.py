"""Create the transform that scales points about a center."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.wording import counted
from dalify.data import Batch
from dalify.kernels.images.affine import fill_scales, fill_transforms
from dalify.kernels.images.affine_rules import dimensions, matrix_spec, result_shape
from dalify.registry import VARIES_BY_FRAME, PerFrame, Spec, Vectors, on_groups, operator


@operator
def scale(
    x: Spec | None = None,
    /,
    *,
    center: PerFrame[list[float]] | None = None,
    ndim: int | None = None,
    reverse_order: bool = False,
    scale: PerFrame[float | list[float]],
) -> Spec:
    """Create the transform that scales points about a center.

    ``out = center + scale * (in - center)``.

    Args:
        x: transforms [k, k + 1] to apply the new one to, or sequences [F, k, k + 1]; by default none.
        center: fixed point, k values; by default 0.
        ndim: k, if a single factor does not determine it.
        reverse_order: False: `x` is applied first, then the new transform; True: the reverse.
        scale: one factor, or one per dimension.

    Returns:
        float32 [k, k + 1], layout "**"; [F, k, k + 1], layout "F**", if `x` is a sequence or an argument has one
        value per frame (``fn.per_frame``).

    Raises:
        DTypeError: a transform is not float32.
        ShapeError: arguments or `x` have different numbers of dimensions.
        ArgumentValueError: `ndim` is less than 1.

    Example:
        >>> twice = fn.transforms.scale(scale=2, ndim=2)  # doctest: +SKIP
    """
    return matrix_spec(x, _size(x, scale, center, ndim), VARIES_BY_FRAME in (scale, center))


def _size(x: Any, scale: Any, center: Any, ndim: int | None) -> int | None:
    found = dimensions(scale, center)
    if ndim is not None and ndim < 1:
        raise ArgumentValueError(f"ndim must be at least 1; got {ndim}.")
    if ndim is not None and found in (None, 1):
        return ndim
    if ndim is not None and found != ndim:
        raise ShapeError(f"ndim is {ndim}; scale and center have {counted(found, 'value')}.")
    return None if found == 1 and x is not None else found


@scale.prepare
def _(x: Batch | None, *, scale: Vectors, center: Vectors | None, ndim: int | None) -> dict[str, Any]:
    ragged = isinstance(scale, list) or isinstance(center, list)
    return result_shape(x, ndim if ragged else _size(x, scale, center, ndim), scale, center)


@scale.cpu_samples
@scale.gpu_samples
@on_groups()
def _(out: Any, x: Any, *, scale: np.ndarray, center: np.ndarray | None, reverse_order: bool) -> None:
    fill_transforms(out, x, reverse_order, fill_scales, scale, center)
