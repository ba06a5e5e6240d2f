"""Rotate images around their center, and volumes around an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.data.batch import Batch
from dalify.data.dtypes import DALIDataType, DALIInterpType
from dalify.data.samples import Samples
from dalify.data.spec import Spec
from dalify.kernels.images.frames import folded_frames, frame_count, per_frame, per_frame_of_samples, visual_layout
from dalify.kernels.images.rotation import about_centers, canvas_size, rotation_matrix
from dalify.kernels.images.warp import warp_2d, warp_3d
from dalify.kernels.images.warp_rules import LAYOUTS, check_interpolation, spatial_size, with_size
from dalify.kernels.images.warp_torch import warp_samples_torch
from dalify.registry import AnySamples, Canvas, PerSample, Vectors, operator


@operator
def rotate(
    x: Spec,
    /,
    *,
    angle: PerSample[float | list[float]],
    axis: PerSample[list[float]] | None = None,
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


def _matrices(angles: np.ndarray, axes: np.ndarray | None) -> list[np.ndarray]:
    """Return the matrices of all frames: angles [M], axes [M, 3] or None."""
    if axes is None:
        return [rotation_matrix(a) for a in angles.tolist()]
    matrices = [rotation_matrix(a, direction) for a, direction in zip(angles.tolist(), axes.tolist(), strict=True)]
    if any(np.isnan(matrix).any() for matrix in matrices):
        raise ArgumentValueError("axis must not be zero; got [0, 0, 0].")
    return matrices


def _shape_of(shape: tuple[int, ...], layout: str, matrices: list[np.ndarray]) -> tuple[int, ...]:
    canvas = canvas_size(spatial_size(shape, layout), matrices)
    return (*shape[: layout.startswith("F")], *canvas, shape[-1])


@rotate.geometry
def _(
    x: Batch, *, angle: Vectors, axis: Vectors | None, keep_size: bool, size: Vectors | None, spec: Spec
) -> dict[str, Any]:
    if keep_size or size is not None:
        return {}
    layout = _check_layout(spec, axis)
    shapes = []
    for i, shape in enumerate(x.shapes()):
        frames = frame_count(layout, shape)
        angles = per_frame(angle[i][None], frames, "angle")
        directions = None if axis is None or "D" not in layout else per_frame(axis[i][None], frames, "axis", 3)
        shapes.append(_shape_of(tuple(shape), layout, _matrices(angles, directions)))
    return {"out_shapes": np.array(shapes, np.int64)}


def _maps(angles: np.ndarray, axes: np.ndarray | None, sizes: np.ndarray, out_sizes: np.ndarray) -> np.ndarray:
    """Return the maps of all frames, from their angles, axes, and extents without channels."""
    # In float32, as in DALI: see `warp`.
    matrices = np.stack(_matrices(angles, axes)).astype(np.float32)
    # Angles of images are counterclockwise with y down, so their matrix already is the inverse map.
    return about_centers(matrices if axes is None else matrices.transpose(0, 2, 1), sizes, out_sizes)


@rotate.cpu_samples
@rotate.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
    *,
    angle: Vectors,
    axis: Vectors | None,
    fill_value: float | None,
    interp_type: DALIInterpType,
    spec: Spec,
) -> None:
    layout = visual_layout(spec, LAYOUTS)
    angles = per_frame_of_samples(angle, x, layout, "angle")
    axes = None if axis is None or "D" not in layout else per_frame_of_samples(axis, x, layout, "axis", 3)
    target, source = folded_frames(out, layout), folded_frames(x, layout)
    warp_cpu = warp_3d if "D" in layout else warp_2d
    warp: Any = warp_cpu if isinstance(x, Samples) else warp_samples_torch
    warp(
        target,
        source,
        _maps(angles, axes, source.shapes[:, :-1], target.shapes[:, :-1]),
        nearest=interp_type == DALIInterpType.INTERP_NN,
        fill_value=fill_value,
    )
