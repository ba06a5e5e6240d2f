"""Remap the pixels of images with two coordinate maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalify.base.errors import ShapeError, check_option
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.data import DALIInterpType, Samples, Spec
from dalify.kernels.arrays.joined import joined, split
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.images.frames import flat_frames, folded_frames, visual_layout
from dalify.kernels.images.warp import sample_2d
from dalify.kernels.images.warp_rules import check_interpolation
from dalify.kernels.images.warp_torch import sample_torch
from dalify.registry import operator

_LAYOUTS = ("HWC", "FHWC")
_ORIGINS = ("corner", "center")


@operator
def remap(
    x: Spec,
    mapx: Spec,
    mapy: Spec,
    /,
    *,
    interp: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    pixel_origin: str = "corner",
) -> Spec:
    """Remap images with two coordinate maps: ``out(x, y) = in(mapx(x, y), mapy(x, y))``, 0 outside.

    Args:
        x: images HWC or sequences FHWC of any numeric type.
        mapx: x coordinates of the source points, float32 [H', W'], or [F, H', W'] for frames; a last axis of extent 1
            is allowed.
        mapy: y coordinates of the source points.
        interp: INTERP_LINEAR or INTERP_NN.
        pixel_origin: origin of the coordinates: the "corner" of the first pixel, or its "center" as in OpenCV.

    Returns:
        Extents of the maps, same type and layout.

    Raises:
        LayoutError: the layout is not supported.
        ShapeError: the maps have different shapes, or a different number of frames than `x`.
        ArgumentValueError: an unknown option.

    Example:
        >>> images = fn.experimental.remap(images, mapx, mapy)  # doctest: +SKIP
    """
    layout = visual_layout(x, _LAYOUTS)
    check_interpolation(interp)
    check_option("pixel_origin", pixel_origin, _ORIGINS)
    if x.shape is None or mapx.shape is None or mapy.shape is None:
        return x
    if mapx.shape != mapy.shape:
        raise ShapeError(f"mapx and mapy must have the same shape; got {mapx.shape} and {mapy.shape}.")
    frames = x.shape[: layout.startswith("F")]
    extents = _extents(mapx.shape, (mapx.layout or "").startswith("F") or len(frames) == 1, frames)
    return x.replace(shape=(*frames, *extents, x.shape[-1]))


def _extents(shape: tuple[int, ...], may_have_frames: bool, frames: tuple[int, ...]) -> tuple[int, ...]:
    extents = shape[:-1] if len(shape) > 2 and shape[-1] == 1 else shape
    if may_have_frames and len(extents) == 3:
        if frames and extents[0] != frames[0]:
            raise ShapeError(f"the maps have {counted(extents[0], 'frame')}; the input has {frames[0]}.")
        extents = extents[1:]
    if len(extents) != 2:
        raise ShapeError(f"a map must have the axes height and width; got the shape {shape}.")
    return extents


def _points(mapping: Samples, out: Samples, owners: np.ndarray, pixel_origin: str) -> Samples:
    """Return one coordinate of the points of all frames as float32 [H', W'], relative to the corner.

    Args:
        mapping: the map of each sample, or maps of its frames.
        out: the frames of the result, [H', W', C].
        owners: the sample of each frame.
        pixel_origin: origin of the coordinates.
    """
    maps = mapping
    if pixel_origin == "center" or mapping.dtype != np.float32:
        values = joined(mapping).reshape(-1)
        values = values + 0.5 if pixel_origin == "center" else values
        maps = split(np.asarray(values, np.float32), mapping.shapes)
    shapes = np.ascontiguousarray(out.shapes[:, :2])
    sizes = shapes.prod(1)
    has_frames = mapping.shapes[owners].prod(1) != sizes
    frames = np.arange(len(owners)) - np.searchsorted(owners, owners)
    return Samples(maps.addresses[owners] + has_frames * frames * sizes * 4, shapes, maps.dtype, maps)


@remap.cpu_samples
def _(
    out: Samples,
    x: Samples,
    mapx: Samples,
    mapy: Samples,
    *,
    interp: DALIInterpType,
    pixel_origin: str,
    spec: Spec,
) -> None:
    layout = visual_layout(spec, _LAYOUTS)
    target, owners = out.folded(int(layout.startswith("F")))
    owners = np.arange(len(out)) if owners is None else owners
    points = _points(mapx, target, owners, pixel_origin), _points(mapy, target, owners, pixel_origin)
    source = folded_frames(x, layout)
    sample_2d(target, source, points, nearest=interp == DALIInterpType.INTERP_NN, fill_value=0.0)


def _points_torch(mapping: torch.Tensor, out_shape: Sequence[int], frames: int, pixel_origin: str) -> torch.Tensor:
    """Return one map as [N * F, H', W'], relative to the corner."""
    count = mapping.shape[0]
    height, width = out_shape[1:3]
    points = mapping.reshape(count, -1, height, width)
    if points.shape[1] != frames:
        points = points.repeat(1, frames, 1, 1)
    flat = points.reshape(count * frames, height, width)
    return flat + 0.5 if pixel_origin == "center" else flat


@remap.gpu_samples
@on_padded
def _(
    out: torch.Tensor,
    x: torch.Tensor,
    mapx: torch.Tensor,
    mapy: torch.Tensor,
    *,
    interp: DALIInterpType,
    pixel_origin: str,
    spec: Spec,
    extents: np.ndarray,
) -> None:
    layout = visual_layout(spec, _LAYOUTS)
    source, target = flat_frames(x, layout), flat_frames(out, layout)
    frames = len(target) // len(x)
    maps = [_points_torch(mapping, target.shape, frames, pixel_origin).float() for mapping in (mapy, mapx)]
    sizes = np.repeat(extents[:, -3:-1], frames, axis=0)
    sample_torch(target, source, maps, nearest=interp == DALIInterpType.INTERP_NN, fill_value=0.0, extents=sizes)
