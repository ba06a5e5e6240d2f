"""Create the transform that shears points about a center."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.data import Batch
from dalify.kernels.images.affine import fill_shears, fill_transforms
from dalify.kernels.images.affine_rules import matrix_spec, result_shape, shear_size
from dalify.registry import VARIES_BY_FRAME, AnyShape, PerFrame, Spec, Vectors, on_groups, operator


@operator
def shear(
    x: Spec | None = None,
    /,
    *,
    angles: PerFrame[AnyShape[list[float]]] | None = None,
    center: PerFrame[list[float]] | None = None,
    reverse_order: bool = False,
    shear: PerFrame[AnyShape[list[float]]] | None = None,
) -> Spec:
    """Create the transform that shears points about a center.

    In 2-D ``out_x = x + shear_x * y`` and ``out_y = shear_y * x + y``. Angles specify factors ``tan(angle)``.

    Args:
        x: transforms [k, k + 1] to apply the new one to, or sequences [F, k, k + 1]; by default none.
        angles: shear angles in degrees, in the order of `shear`; instead of `shear`.
        center: fixed point, k values; by default 0.
        reverse_order: False: `x` is applied first, then the new transform; True: the reverse.
        shear: 2 factors (x, y) or 6 (xy, xz, yx, yz, zx, zy).

    Returns:
        float32 [k, k + 1], layout "**"; [F, k, k + 1], layout "F**", if `x` is a sequence or an argument has one
        value per frame (``fn.per_frame``).

    Raises:
        DTypeError: a transform is not float32.
        ArgumentValueError: both of `angles` and `shear`, or neither.
        ShapeError: a wrong number of factors, or arguments or `x` have different numbers of dimensions.

    Example:
        >>> slant = fn.transforms.shear(shear=[0.2, 0])  # doctest: +SKIP
    """
    if (angles is None) == (shear is None):
        raise ArgumentValueError("specify either shear or angles.")
    factors = angles if shear is None else shear
    return matrix_spec(
        x, shear_size(len(factors)) if isinstance(factors, tuple) else None, VARIES_BY_FRAME in (factors, center)
    )


@shear.prepare
def _(x: Batch | None, *, angles: Vectors | None, center: Vectors | None, shear: Vectors | None) -> dict[str, Any]:
    factors = angles if shear is None else shear
    assert factors is not None, "dalify bug: neither shear nor angles"
    size = shear_size(factors[0].shape[-1] if isinstance(factors, list) else factors.shape[-1])
    return result_shape(x, size, factors, center)


@shear.cpu_samples
@shear.gpu_samples
@on_groups()
def _(
    out: Any,
    x: Any,
    *,
    angles: np.ndarray | None,
    center: np.ndarray | None,
    shear: np.ndarray | None,
    reverse_order: bool,
) -> None:
    factors = angles if shear is None else shear
    fill_transforms(out, x, reverse_order, fill_shears, factors, shear is None, center)
