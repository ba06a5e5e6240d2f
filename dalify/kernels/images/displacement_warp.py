"""Displacement warps of the operators water, sphere and jitter: each pixel is sampled at a displaced point."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.optional import torch
from dalify.base.small_arrays import zeros
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIInterpType
from dalify.data.samples import Samples
from dalify.data.spec import Spec
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.convert import fill_in_range
from dalify.kernels.arrays.gather import copy_windows
from dalify.kernels.arrays.joined import blocks
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.warp import sample_2d
from dalify.kernels.images.warp_rules import check_interpolation
from dalify.kernels.images.warp_torch import sample_torch

if TYPE_CHECKING:
    from torch import Tensor

# Function of padded images [N, H, W, C] and their extents [N, 3] on the host, which returns the source points,
# [N, 2, H, W] or [1, 2, H, W].
PointsTorch = Callable[["Tensor", np.ndarray], "Tensor"]
# Function that fills x and y of the source points, float32 samples [H, W], given the indices of the samples.
FillPoints = Callable[[Samples, Samples, np.ndarray], None]


def displaced_spec(x: Spec, interp_type: DALIInterpType) -> Spec:
    """Return the output spec, which equals the input spec.

    Raises:
        LayoutError: the layout is not HWC.
        ArgumentValueError: the interpolation is not nearest or linear.
    """
    check_interpolation(interp_type)
    return x.replace(layout=visual_layout(x, ("HWC",)))


def moved_by_waves(
    height: int,
    width: int,
    amplitudes: tuple[float, float],
    frequencies: tuple[float, float],
    phases: tuple[float, float],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the displacements of standing waves: along x for each y, float32 [H], and along y for each x, [W].

    Args:
        height: height of the image.
        width: width of the image.
        amplitudes: amplitudes of the displacements along x and y, in pixels.
        frequencies: radians per pixel.
        phases: radians.
    """
    rows, columns = np.arange(height, dtype=np.float32), np.arange(width, dtype=np.float32)
    moved_x = np.float32(amplitudes[0]) * np.sin(np.float32(frequencies[0]) * rows + np.float32(phases[0]))
    moved_y = np.float32(amplitudes[1]) * np.cos(np.float32(frequencies[1]) * columns + np.float32(phases[1]))
    return moved_x, moved_y


@njit(nogil=True, cache=True)
def _fill_water(x_at, y_at, shapes, like, moved_x, moved_y):
    for n in range(len(x_at)):
        form = (shapes[n, 0], shapes[n, 1])
        points_x, points_y = array_at(x_at[n], form, like), array_at(y_at[n], form, like)
        for y in range(shapes[n, 0]):
            for i in range(shapes[n, 1]):
                points_x[y, i] = np.float32(i) + moved_x[y]
                points_y[y, i] = np.float32(y) + moved_y[i]


def water_points(moved_x: np.ndarray, moved_y: np.ndarray) -> FillPoints:
    """Return the function that fills the points of waves.

    Args:
        moved_x: displacements along x for at least as many rows as the images have; see `moved_by_waves`.
        moved_y: displacements along y for at least as many columns.
    """

    def fill(points_x: Samples, points_y: Samples, _numbers: np.ndarray) -> None:
        _fill_water(points_x.addresses, points_y.addresses, points_x.shapes, points_x.like, moved_x, moved_y)

    return fill


@njit(nogil=True, cache=True)
def _fill_sphere(x_at, y_at, shapes, like):
    half = np.float32(0.5)
    for n in range(len(x_at)):
        height, width = shapes[n, 0], shapes[n, 1]
        points_x, points_y = array_at(x_at[n], (height, width), like), array_at(y_at[n], (height, width), like)
        center_x, center_y = np.float32(width / 2), np.float32(height / 2)
        largest = np.float32(max(width // 2, height // 2, 1))
        for y in range(height):
            from_y = np.float32(y) + half - center_y
            for i in range(width):
                from_x = np.float32(i) + half - center_x
                radius = np.sqrt(from_x * from_x + from_y * from_y) / largest
                points_x[y, i] = from_x * radius + center_x
                points_y[y, i] = from_y * radius + center_y


def sphere_points(points_x: Samples, points_y: Samples, _numbers: np.ndarray) -> None:
    """Fill the points displaced toward the center in proportion to the distance from it; see `FillPoints`."""
    _fill_sphere(points_x.addresses, points_y.addresses, points_x.shapes, points_x.like)


def sphere_points_torch(x: Tensor, extents: np.ndarray) -> Tensor:
    """Return `sphere_points` of padded images [N, H, W, C] with the given extents, as a tensor [N, 2, H, W]."""
    height, width = uploaded(extents[:, :2], x.device, np.float32).reshape(-1, 2, 1, 1).unbind(1)
    largest = uploaded(np.maximum(extents[:, :2].max(1) // 2, 1), x.device, np.float32).reshape(-1, 1, 1)
    at_x = torch.arange(x.shape[2], device=x.device, dtype=torch.float32) + 0.5 - width / 2
    at_y = torch.arange(x.shape[1], device=x.device, dtype=torch.float32)[:, None] + 0.5 - height / 2
    radius = (at_x**2 + at_y**2).sqrt() / largest
    return torch.stack([at_x * radius + width / 2, at_y * radius + height / 2], 1)


def displace_cpu(
    out: Samples,
    x: Samples,
    fill_points: FillPoints,
    mask: np.ndarray,
    interp_type: DALIInterpType,
    fill_value: float,
    *,
    is_shared: bool,
) -> None:
    """Fill `out` with `x` sampled at displaced points.

    Args:
        out: N samples [H, W, C], output.
        x: N samples of the same shapes and type.
        fill_points: computes the points.
        mask: [N]; samples with 0 are copied.
        interp_type: INTERP_NN or INTERP_LINEAR.
        fill_value: value outside `x`.
        is_shared: whether images of one shape have the same points.
    """
    kept = np.flatnonzero(mask == 0)
    if len(kept):
        copy_windows(out.take(kept), x.take(kept), zeros((len(kept), 3), np.int64))
        moved = np.flatnonzero(mask)
        out, x = out.take(moved), x.take(moved)
    else:
        moved = np.arange(len(out))
    is_one = is_shared and x.is_uniform
    for block in [np.arange(len(out))] if is_one else blocks(out.shapes[:, :2].prod(1)):
        shapes = np.ascontiguousarray(out.shapes[block[:1] if is_one else block, :2])
        points = Samples.empty(shapes, np.dtype(np.float32)), Samples.empty(shapes, np.dtype(np.float32))
        fill_points(*points, moved[block])
        if is_one:
            first = zeros(len(out), np.int64)
            points = points[0].take(first), points[1].take(first)
        nearest = interp_type == DALIInterpType.INTERP_NN
        sample_2d(out.take(block), x.take(block), points, nearest=nearest, fill_value=fill_value)


def displace_samples_torch(
    out: DeviceSamples,
    x: DeviceSamples,
    points: PointsTorch,
    mask: np.ndarray,
    interp_type: DALIInterpType,
    fill_value: float,
) -> None:
    """`displace_cpu` for samples on the device."""
    if not x.dtype.is_floating_point:
        fill_value = fill_in_range(fill_value, np.dtype(str(x.dtype).removeprefix("torch."))).item()
    _displace_padded(
        out, x, points=points, mask=mask, nearest=interp_type == DALIInterpType.INTERP_NN, fill_value=fill_value
    )


@on_padded
def _displace_padded(
    out: Tensor,
    x: Tensor,
    *,
    points: PointsTorch,
    mask: np.ndarray,
    nearest: bool,
    fill_value: float,
    extents: np.ndarray,
) -> None:
    maps = points(x, extents)
    sample_torch(out, x, [maps[:, 1], maps[:, 0]], nearest=nearest, fill_value=fill_value, extents=extents[:, :2])
    keep_unmasked_torch(out, x, mask)


def keep_unmasked_torch(out: Tensor, x: Tensor, mask: np.ndarray) -> None:
    """Copy the images of `x` for which `mask` [N] is 0 to `out`; both are [N, H, W, C]."""
    if not mask.all():
        is_kept = uploaded(mask == 0, x.device).reshape(-1, 1, 1, 1)
        target = movable_torch(out)
        target.copy_(torch.where(is_kept, movable_torch(x), target))
