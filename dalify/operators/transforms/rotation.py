"""Create the transform that rotates points around a center."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.data import Batch
from dalify.kernels.images.affine import fill_rotations, fill_transforms
from dalify.kernels.images.affine_rules import matrix_spec, result_shape
from dalify.registry import VARIES_BY_FRAME, PerFrame, Spec, Vectors, on_groups, operator


@operator
def rotation(
    x: Spec | None = None,
    /,
    *,
    angle: PerFrame[float],
    axis: PerFrame[list[float]] | None = None,
    center: PerFrame[list[float]] | None = None,
    reverse_order: bool = False,
) -> Spec:
    """Create the transform that rotates points around a center.

    A positive angle rotates x toward y: counterclockwise if y points up, clockwise if it points down.

    Args:
        x: transforms [k, k + 1] to apply the new one to, or sequences [F, k, k + 1]; by default none.
        angle: degrees.
        axis: direction (x, y, z), not zero, to rotate 3-D points around; by default points are 2-D.
        center: fixed point, k values; by default 0.
        reverse_order: False: `x` is applied first, then the new transform; True: the reverse.

    Returns:
        float32 [k, k + 1], layout "**"; [F, k, k + 1], layout "F**", if `x` is a sequence or an argument has one
        value per frame (``fn.per_frame``).

    Raises:
        DTypeError: a transform is not float32.
        ShapeError: arguments or `x` have different numbers of dimensions.
        ArgumentValueError: `axis` is zero.

    Example:
        >>> rotation = fn.transforms.rotation(angle=30, center=[112, 112])  # doctest: +SKIP
    """
    return matrix_spec(x, 2 if axis is None else 3, VARIES_BY_FRAME in (angle, axis, center))


@rotation.prepare
def _(x: Batch | None, *, angle: Vectors, axis: Vectors | None, center: Vectors | None) -> dict[str, Any]:
    return result_shape(x, 2 if axis is None else 3, angle, axis, center)


@rotation.cpu_samples
@rotation.gpu_samples
@on_groups()
def _(
    out: Any, x: Any, *, angle: np.ndarray, axis: np.ndarray | None, center: np.ndarray | None, reverse_order: bool
) -> None:
    fill_transforms(out, x, reverse_order, fill_rotations, angle, axis, center)
