"""Make the transform that rotates points about a center."""

from __future__ import annotations

from dalify.kernels.affine import fill_on_device, fill_rotations
from dalify.kernels.affine_rules import matrix_spec, result_shape
from dalify.registry import VARIES_BY_FRAME, PerFrame, Spec, operator


@operator
def rotation(
    x: Spec | None = None,
    /,
    *,
    angle: PerFrame[float | list[float]],
    axis: PerFrame[list[float]] | None = None,
    center: PerFrame[list[float]] | None = None,
    reverse_order: bool = False,
) -> Spec:
    """Make the transform that rotates points about a center.

    A positive angle turns x towards y: counter-clockwise where y points up, clockwise where it points down.

    Args:
        x: transforms [k, k + 1] to apply the new one to, or sequences [F, k, k + 1]; by default there is none.
        angle: degrees.
        axis: direction (x, y, z) of any length but 0, to rotate points of 3 dimensions about; without it they have 2.
        center: point that stays where it is, k values; by default 0.
        reverse_order: False: `x` is applied first, then the new transform; True: the other way round.

    Returns:
        float32 [k, k + 1], layout "**"; [F, k, k + 1], layout "F**", where `x` is a sequence or an argument has one
        value per frame (``fn.per_frame``).

    Raises:
        DTypeError: a transform that is not float32.
        ShapeError: arguments or `x` of different dimensions.
        ArgumentValueError: `axis` has no length.

    Example:
        >>> turn = fn.transforms.rotation(angle=30, center=[112, 112])  # doctest: +SKIP
    """
    return matrix_spec(x, 2 if axis is None else 3, VARIES_BY_FRAME in (angle, axis, center))


@rotation.prepare
def _(x, *, angle, axis, center):
    return result_shape(x, 2 if axis is None else 3, angle, axis, center)


@rotation.cpu
def _(out, x, *, angle, axis, center, reverse_order):
    fill_rotations(out, x, reverse_order, angle, axis, center)


@rotation.gpu
def _(out, x, *, angle, axis, center, reverse_order):
    fill_on_device(out, x, reverse_order, lambda host: fill_rotations(host, None, False, angle, axis, center))
