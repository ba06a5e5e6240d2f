"""Make the transform that scales points about a center."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ShapeError
from dalify.kernels.affine import about, all_shapes, dimensions, matrix_spec, vectors, write_joined
from dalify.registry import PerSample, Spec, operator


@operator
def scale(
    x: Spec | None = None,
    /,
    *,
    center: PerSample[list[float]] | None = None,
    ndim: int | None = None,
    reverse_order: bool = False,
    scale: PerSample[float | list[float]],
) -> Spec:
    """Make the transform that scales points about a center.

    ``out = center + scale * (in - center)``.

    Args:
        x: transforms [k, k + 1] to apply the new one to, or sequences [F, k, k + 1]; by default there is none.
        center: point that stays where it is, k values; by default 0.
        ndim: k, where a single factor leaves it open.
        reverse_order: False: `x` is applied first, then the new transform; True: the other way round.
        scale: one factor, or one per dimension.

    Returns:
        float32 [k, k + 1] on the CPU, layout "**"; for sequences [F, k, k + 1], layout "F**".

    Raises:
        ShapeError: arguments or `x` of different dimensions.

    Example:
        >>> twice = fn.transforms.scale(scale=2, ndim=2)  # doctest: +SKIP
    """
    return matrix_spec(x, _size(x, scale, center, ndim))


def _size(x: Any, scale: Any, center: Any, ndim: int | None) -> int | None:
    found = dimensions(scale, center)
    if ndim is not None and found in (None, 1):
        return ndim
    if ndim is not None and found != ndim:
        raise ShapeError(f"ndim is {ndim}; scale and center have {found} values.")
    return None if found == 1 and x is not None else found


@scale.prepare
def _(x, *, scale, center, ndim, count):
    ragged = isinstance(scale, list) or isinstance(center, list)
    return {} if ragged else all_shapes(x, _size(x, scale, center, ndim), count)


@scale.cpu
def _(out, x, *, scale, center, reverse_order):
    count, size = len(out), out.shape[-2]
    linear = vectors(scale, count, size)[:, :, None] * np.eye(size)
    middle = None if center is None else vectors(center, count, size)
    write_joined(out, x, about(linear, middle), reverse_order)
