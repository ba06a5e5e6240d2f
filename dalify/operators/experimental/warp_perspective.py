"""Warp images with a perspective matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, check_option
from dalify.data import Batch, DALIInterpType, DeviceSamples, Samples, Spec
from dalify.kernels.arrays.grid_torch import common_unit
from dalify.kernels.arrays.joined import blocks
from dalify.kernels.arrays.strided import transpose_samples
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.windows_torch import transpose_samples_torch
from dalify.kernels.images.frames import per_frame_of_samples, visual_layout
from dalify.kernels.images.projection import projected_points
from dalify.kernels.images.warp import sample_2d, warp_2d
from dalify.kernels.images.warp_cubic import warp_cubic, warp_cubic_torch
from dalify.kernels.images.warp_rules import (
    LARGEST_SIZE,
    framed_images,
    framed_shapes,
    framed_spec,
    given_matrices,
    inverted,
    rounded_extent,
)
from dalify.kernels.images.warp_torch import (
    inverted_torch,
    matrices_torch,
    warp_folded_torch,
    warp_samples_torch,
)
from dalify.registry import AnySamples, Matrix, Parameters, PerSampleOrFrame, Shaping, Vectors, operator

_LAYOUTS = ("HW", "HWC", "FHWC", "CHW", "FCHW")
_BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap")
_ORIGINS = ("corner", "center")
_FILTERS = (DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR, DALIInterpType.INTERP_CUBIC)
# Converts coordinates relative to the center of the first pixel to coordinates relative to its corner.
_TO_CORNER = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
_TO_CENTER = np.array([[1, 0, -0.5], [0, 1, -0.5], [0, 0, 1]])


@dataclass(slots=True)
class _Warp(Parameters):
    """The matrix, and how pixels are interpolated.

    Attributes:
        border_mode: values outside the image: "constant", "replicate", "reflect" (the edge pixel twice), "reflect_101"
            (once) or "wrap".
        fill_value: value for the border mode "constant": one value or one per channel; by default 0.
        interp_type: INTERP_LINEAR, INTERP_NN or INTERP_CUBIC. On the CPU OpenCV interpolates cubically; OpenCV 4 rounds
            positions to 1/32 of a pixel.
        inverse_map: the matrix maps output to source; False: it maps source to output and is inverted.
        matrix: 9 numbers in row-major order; one matrix per sample or per frame.
        pixel_origin: origin of the coordinates: the "corner" of the first pixel, or its "center" as in OpenCV.
    """

    border_mode: str = "constant"
    fill_value: list[float] | None = None
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR
    inverse_map: bool = True
    matrix: PerSampleOrFrame[Matrix[list[float]]] | None = None
    pixel_origin: str = "corner"

    def check(self) -> None:
        """Raise ArgumentValueError for an unknown option."""
        check_option("interp_type", self.interp_type, _FILTERS)
        check_option("border_mode", self.border_mode, _BORDERS)
        check_option("pixel_origin", self.pixel_origin, _ORIGINS)

    @property
    def is_nearest(self) -> bool:
        """Whether the nearest pixel is taken."""
        return self.interp_type == DALIInterpType.INTERP_NN

    @property
    def is_cubic(self) -> bool:
        """Whether interpolation is cubic."""
        return self.interp_type == DALIInterpType.INTERP_CUBIC

    @property
    def is_common(self) -> bool:
        """Whether the kernels that warps share support the filter and the border mode."""
        return not self.is_cubic and self.border_mode in ("constant", "replicate")

    def oriented(self, rows: np.ndarray) -> np.ndarray:
        """Return the maps from output to source, both relative to the corner, float64 [frames, 3, 3]."""
        maps = rows.reshape(-1, 3, 3).astype(np.float64)
        maps = maps if self.inverse_map else inverted(maps)
        return maps if self.pixel_origin == "corner" else _TO_CORNER @ maps @ _TO_CENTER

    def fills(self, spec: Spec) -> Sequence[float] | None:
        """Return the fill values; for integers of at most 16 bits, rounded and saturated as by OpenCV.

        Halves are rounded to even, and values that are not finite or out of the range of int32 become its minimum.
        """
        assert spec.dtype is not None, "dalify bug: a kernel without the type of its input"
        dtype = spec.dtype.numpy
        if self.fill_value is None or dtype.kind not in "iu" or dtype.itemsize > 2:
            return self.fill_value
        values = np.rint(np.asarray(self.fill_value, np.float32))
        values[~(abs(values) < 2.0**31)] = -(2.0**31)
        limits = np.iinfo(dtype)
        return tuple(values.clip(limits.min, limits.max).tolist())


@operator
def warp_perspective(
    x: Spec,
    matrix_input: Spec | None = None,
    /,
    *,
    warp: _Warp,
    size: Shaping[list[float]] | None = None,
) -> Spec:
    """Warp images with a perspective matrix.

    With ``inverse_map=True`` the matrix maps output points to source points, up to a factor:
    ``(x', y', w) = M (x, y, 1)`` and ``out(x, y) = in(x' / w, y' / w)``.

    Args:
        x: images HW, HWC, CHW or sequences of them, of any numeric type.
        matrix_input: the matrix as an input, [3, 3] per sample, or [F, 3, 3] for frames; instead of `matrix`.
        size: height and width of the result, or one number for both; by default the size of the input.

    Returns:
        Same type and layout.

    Raises:
        LayoutError: the layout is not supported.
        ArgumentValueError: no matrix or two matrices, a singular matrix with ``inverse_map=False`` (not if it
            is on the device), or an unknown option.
        ShapeError: a matrix of the wrong size.

    Example:
        >>> images = fn.experimental.warp_perspective(
        ...     images, matrix=[1, 0, 0, 0, 1, 0, 0.001, 0, 1]
        ... )  # doctest: +SKIP
    """
    layout = visual_layout(x, _LAYOUTS)
    x = x.replace(layout=layout)
    warp.check()
    if (matrix_input is None) == (warp.matrix is None or warp.matrix == ()):
        raise ArgumentValueError("specify the matrix either as the second input or as the argument matrix.")
    channels = None if x.shape is None else x.shape[layout.index("C")] if "C" in layout else 1
    if warp.fill_value is not None and channels is not None and len(warp.fill_value) not in (0, 1, channels):
        raise ArgumentValueError(
            f"fill_value must be one number or one for each of the {channels} channels; got {len(warp.fill_value)}."
        )
    x = framed_spec(x, matrix_input, _LAYOUTS)
    if not isinstance(size, tuple) or not size:
        return x
    if len(size) > 2 or min(size) < 0:
        raise ArgumentValueError(f"size must be a non-negative height and width; got {list(size)}.")
    height, width = map(rounded_extent, size * 2 if len(size) == 1 else size)
    return x.with_extents({"H": height, "W": width})


@warp_perspective.geometry
def _(
    x: Batch, matrix_input: Batch | None, *, fill_value: tuple[float, ...] | None, size: Vectors | None, spec: Spec
) -> dict[str, Any]:
    given, in_layout = x.shape_array(), visual_layout(spec, _LAYOUTS)
    shapes, layout = framed_shapes(given, in_layout, matrix_input)
    if size is None:
        return {} if shapes is given else {"out_shapes": shapes}
    # The rule runs, and raises its error, for what it refuses.
    if isinstance(size, list) or size.shape[1] not in (1, 2):
        return {}
    if not ((size >= 0) & (size < LARGEST_SIZE)).all():
        return {}
    channels = shapes[:, layout.index("C")] if "C" in layout else np.ones(1)
    if fill_value and len(fill_value) > 1 and not (channels == len(fill_value)).all():
        return {}
    out_shapes = shapes.copy()
    rows = layout.index("H")
    out_shapes[:, rows : rows + 2] = np.maximum(np.floor(size + 0.5), np.ceil(np.minimum(size, 1)))
    return {"out_shapes": out_shapes}


@warp_perspective.cpu_samples
@warp_perspective.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
    matrix_input: AnySamples | None,
    *,
    warp: _Warp,
    matrix: Vectors | None,
    spec: Spec,
) -> None:
    layout = visual_layout(spec, _LAYOUTS)
    target, source, out_layout = framed_images(out, x, layout)
    if isinstance(matrix_input, DeviceSamples):
        maps: Any = matrices_torch(matrix_input, out, out_layout, 3, 3)
        maps = maps if warp.inverse_map else inverted_torch(maps)
        if warp.pixel_origin == "center":
            corner = uploaded(_TO_CORNER, maps.device, np.float32)
            maps = corner @ maps @ uploaded(_TO_CENTER, maps.device, np.float32)
    else:
        given = given_matrices(matrix_input, matrix, 3)
        maps = warp.oriented(per_frame_of_samples(given, out, out_layout, "matrix", 9))
    fills = warp.fills(spec)
    if isinstance(x, DeviceSamples):
        empty = partial(DeviceSamples.empty, device=x.device)
        steps: tuple[Any, Any, Any] = _warp_samples, empty, transpose_samples_torch
    else:
        steps = _warp, Samples.empty, transpose_samples
    run, empty, transpose = steps
    if layout == "HW":
        run(target.with_axis(2), source.with_axis(2), maps, warp, fills)
    elif layout.endswith("CHW"):
        images, warped = (empty(planes.shapes[:, [1, 2, 0]], x.dtype) for planes in (source, target))
        transpose(images, source, (1, 2, 0))
        run(warped, images, maps, warp, fills)
        transpose(target, warped, (2, 0, 1))
    else:
        run(target, source, maps, warp, fills)


def _warp(out: Samples, x: Samples, maps: np.ndarray, warp: _Warp, fills: Sequence[float] | None) -> None:
    """Warp samples HWC with `maps` [N, 3, 3]."""
    is_common = ~x.shapes.all(1) | warp.is_common
    if is_common.any():
        at = np.flatnonzero(is_common)
        fill = fills or 0.0 if warp.border_mode == "constant" else None
        warp_2d(out.take(at), x.take(at), maps[at], nearest=warp.is_nearest, fill_value=fill)
    if is_common.all():
        return
    others = np.flatnonzero(~is_common)
    target, source, matrices = out.take(others), x.take(others), maps[others]
    border = "" if warp.is_cubic else warp.border_mode
    for block in blocks(target.shapes[:, :2].prod(1)):
        images = source.take(block)
        points = projected_points(target.shapes[block, :2], matrices[block], images.shapes[:, :2], border)
        if warp.is_cubic:
            warp_cubic(target.take(block), images, points, warp.border_mode, list(fills or [0.0]))
            continue
        if border == "wrap":
            padded = [np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="wrap") for image in images.arrays()]
            images = Samples.of_batch(Batch(None, padded, ""))
        sample_2d(target.take(block), images, points, nearest=warp.is_nearest, fill_value=None)


def _warp_samples(out: DeviceSamples, x: DeviceSamples, maps: Any, warp: _Warp, fills: Sequence[float] | None) -> None:
    """Warp samples HWC; see `warp_samples_torch`."""
    nearest = warp.is_nearest
    fill = None if warp.border_mode == "replicate" else fills or 0.0
    if warp.is_common:
        warp_samples_torch(out, x, maps, nearest=nearest, fill_value=fill)
    elif not x.shapes.all() or not common_unit(x, 2) or common_unit(x, 2) != common_unit(out, 2):
        # Empty images, and images of several numbers of channels.
        for n, (target, source) in enumerate(zip(out.tensors(), x.tensors(), strict=True)):
            alone = DeviceSamples.of_dense(target[None]), DeviceSamples.of_dense(source[None]), maps[n : n + 1]
            if source.numel():
                _warp_samples(*alone, warp, fills)
            else:
                warp_samples_torch(*alone, nearest=nearest, fill_value=fill)
    elif warp.is_cubic:
        values, channels = list(fills or [0.0]), int(x.shapes[0, 2])
        warp_cubic_torch(out, x, maps, warp.border_mode, values * channels if len(values) == 1 else values)
    else:
        warp_folded_torch(out, x, maps, nearest=nearest, border_mode=warp.border_mode)
