"""Make the transform that rotates points about a center."""

from __future__ import annotations

from dalify.kernels.affine import about, all_shapes, matrix_spec, rotation_maps, vectors, write_joined
from dalify.registry import PerSample, Spec, operator


@operator
def rotation(
    x: Spec | None = None,
    /,
    *,
    angle: PerSample[float],
    axis: PerSample[list[float]] | None = None,
    center: PerSample[list[float]] | None = None,
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
        float32 [k, k + 1] on the CPU, layout "**"; for sequences [F, k, k + 1], layout "F**".

    Raises:
        ShapeError: arguments or `x` of different dimensions.
        ArgumentValueError: `axis` has no length.

    Example:
        >>> turn = fn.transforms.rotation(angle=30, center=[112, 112])  # doctest: +SKIP
    """
    return matrix_spec(x, 2 if axis is None else 3)


@rotation.prepare
def _(x, *, axis, count):
    return all_shapes(x, 2 if axis is None else 3, count)


@rotation.cpu
def _(out, x, *, angle, axis, center, reverse_order):
    middle = None if center is None else vectors(center, len(out), out.shape[-2])
    write_joined(out, x, about(rotation_maps(angle, axis), middle), reverse_order)
