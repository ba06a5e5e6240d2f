"""Rotate images around their center, and volumes around an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.data import Batch, DALIDataType, DALIInterpType, Samples, Spec
from dalify.kernels.images.frames import folded_frames, frame_counts, per_frame_of_shapes, visual_layout
from dalify.kernels.images.rotation import about_centers, canvas_shapes, rotations
from dalify.kernels.images.warp import warp_2d, warp_3d
from dalify.kernels.images.warp_rules import LAYOUTS, check_interpolation, sized_shapes, with_size
from dalify.kernels.images.warp_torch import warp_samples_torch
from dalify.registry import AnySamples, AnyShape, Canvas, PerSampleOrFrame, Vectors, operator


@operator
def rotate(
    x: Spec,
    /,
    *,
    angle: PerSampleOrFrame[float],
    axis: PerSampleOrFrame[AnyShape[list[float]]] | None = None,
    dtype: DALIDataType | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    keep_size: bool = False,
    size: Canvas[list[float]] | None = None,
) -> Spec:
    """Rotate images around their center, counterclockwise, and volumes around an axis.

    The canvas is the smallest one that contains the result, ``ceil(|cos| * w + |sin| * h)`` wide, plus one if that
    keeps the parity of the dominant source axis. The canvas of a sequence contains all its frames.

    Args:
        x: images HWC, sequences FHWC, volumes DHWC or FDHWC of any numeric type.
        angle: degrees; for volumes, the right-handed rotation around `axis`; one value per sample or per frame.
        axis: for volumes, without effect on images: direction (x, y, z), not zero; one per sample or per frame.
        dtype: type of the result, the input's by default; integers are rounded half away from zero and saturated.
        fill_value: value outside the source; by default the border pixel is repeated.
        interp_type: INTERP_LINEAR or INTERP_NN.
        keep_size: keep the canvas of the source.
        size: canvas, outermost axis first, without channels. Constants are rounded to at least 1, graph values are
            truncated.

    Returns:
        Same layout, elements of `dtype`.

    Raises:
        LayoutError: the layout is not supported.
        ArgumentValueError: volumes without `axis`, a `size` of wrong length, an unsupported
            `interp_type`.

    Example:
        >>> images = fn.rotate(
        ...     images, angle=fn.random.uniform(range=[-10, 10]), fill_value=0
        ... )  # doctest: +SKIP
    """
    layout = _check_layout(x, axis)
    check_interpolation(interp_type)
    result = x.replace(layout=layout, dtype=x.dtype if dtype is None else dtype)
    return with_size(result, layout, size)


def _check_layout(x: Spec, axis: Any) -> str:
    layout = visual_layout(x, LAYOUTS)
    if "D" in layout and axis is None:
        raise ArgumentValueError(
            "volumes require axis, the direction (x, y, z) to rotate around.", hint="axis=[0, 0, 1]"
        )
    return layout


def _matrices(angle: Vectors, axis: Vectors | None, shapes: np.ndarray, counts: np.ndarray, layout: str) -> np.ndarray:
    """Return the matrices of the frames of all samples, which have the given shapes and numbers of frames."""
    angles = per_frame_of_shapes(angle, shapes, layout, "angle")
    axes = None if axis is None or "D" not in layout else per_frame_of_shapes(axis, shapes, layout, "axis", 3)
    try:
        return rotations(angles, axes)
    except ArgumentValueError as error:
        error.sample = int((counts.cumsum() <= error.sample).sum())
        raise


@rotate.geometry
def _(
    x: Batch, *, angle: Vectors, axis: Vectors | None, keep_size: bool, size: Vectors | None, spec: Spec
) -> dict[str, Any]:
    layout, shapes = _check_layout(spec, axis), x.shape_array()
    counts = frame_counts(shapes, layout)
    matrices = _matrices(angle, axis, shapes, counts, layout)
    # One entry per sample, because empty samples are left out.
    entries = np.split(matrices, counts.cumsum()[:-1]) if layout.startswith("F") else matrices
    found: dict[str, Any] = {"matrices": entries}
    if size is not None:
        return found | sized_shapes(shapes, layout, size)
    if not keep_size:
        found["out_shapes"] = canvas_shapes(shapes, int(layout.startswith("F")), matrices, counts)
    return found


@rotate.cpu_samples
@rotate.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
    *,
    matrices: Vectors,
    fill_value: float | None,
    interp_type: DALIInterpType,
    spec: Spec,
) -> None:
    layout = visual_layout(spec, LAYOUTS)
    is_volume = "D" in layout
    target, source = folded_frames(out, layout), folded_frames(x, layout)
    of_frames = np.concatenate(matrices) if isinstance(matrices, list) else matrices
    # Angles of images are counterclockwise with y down, so their matrix already is the inverse map.
    # In float32, as in DALI: see `warp`.
    maps = about_centers(of_frames.astype(np.float32), source.shapes, target.shapes, transposed=is_volume)
    warp_cpu = warp_3d if is_volume else warp_2d
    warp: Any = warp_cpu if isinstance(x, Samples) else warp_samples_torch
    warp(target, source, maps, nearest=interp_type == DALIInterpType.INTERP_NN, fill_value=fill_value)
