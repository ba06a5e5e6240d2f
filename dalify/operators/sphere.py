"""Distort images as if seen through a glass sphere."""

from __future__ import annotations

from dalify.data import DeviceSamples, Samples
from dalify.kernels.images.displacement_warp import sphere_points, sphere_points_torch
from dalify.parameter_groups.displacement import Displacement
from dalify.registry import Spec, operator


@operator
def sphere(x: Spec, /, *, displacement: Displacement) -> Spec:
    """Distort images as if seen through a glass sphere.

    Source coordinates relative to the center are scaled by their normalized distance; corners read outside the image.

    Args:
        x: images HWC of any numeric type.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        ArgumentValueError: an unsupported `interp_type`.

    Example:
        >>> images = fn.sphere(images)  # doctest: +SKIP
    """
    return displacement.result(x)


@sphere.cpu_samples
def _(out: Samples, x: Samples, *, displacement: Displacement) -> None:
    displacement.displace(out, x, sphere_points)


@sphere.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, displacement: Displacement) -> None:
    displacement.displace_samples(out, x, sphere_points_torch)
