"""Make the transform that shears points about a center."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.kernels.affine import about, all_shapes, matrix_spec, shear_maps, shear_size, vectors, write_joined
from dalify.registry import PerSample, Spec, operator


@operator
def shear(
    x: Spec | None = None,
    /,
    *,
    angles: PerSample[list[float]] | None = None,
    center: PerSample[list[float]] | None = None,
    reverse_order: bool = False,
    shear: PerSample[list[float]] | None = None,
) -> Spec:
    """Make the transform that shears points about a center.

    In 2-D ``out_x = x + shear_x * y`` and ``out_y = shear_y * x + y``. Angles stand for factors ``tan(angle)``.

    Args:
        x: transforms [k, k + 1] to apply the new one to, or sequences [F, k, k + 1]; by default there is none.
        angles: shear angles in degrees, in the order of `shear`; instead of it.
        center: point that stays where it is, k values; by default 0.
        reverse_order: False: `x` is applied first, then the new transform; True: the other way round.
        shear: 2 factors (x, y) or 6 (xy, xz, yx, yz, zx, zy).

    Returns:
        float32 [k, k + 1] on the CPU, layout "**"; for sequences [F, k, k + 1], layout "F**".

    Raises:
        ArgumentValueError: both of `angles` and `shear`, or neither.
        ShapeError: another number of factors, or arguments or `x` of different dimensions.

    Example:
        >>> slant = fn.transforms.shear(shear=[0.2, 0])  # doctest: +SKIP
    """
    if (angles is None) == (shear is None):
        raise ArgumentValueError("give either `shear` or `angles`.")
    factors = angles if shear is None else shear
    return matrix_spec(x, shear_size(len(factors)) if isinstance(factors, tuple) else None)


@shear.prepare
def _(x, *, angles, shear, count):
    factors = angles if shear is None else shear
    return {} if isinstance(factors, list) else all_shapes(x, shear_size(factors.shape[-1]), count)


@shear.cpu
def _(out, x, *, angles, center, shear, reverse_order):
    given = shear if angles is None else np.tan(np.deg2rad(angles))
    middle = None if center is None else vectors(center, len(out), out.shape[-2])
    write_joined(out, x, about(shear_maps(np.asarray(given, np.float64)), middle), reverse_order)
