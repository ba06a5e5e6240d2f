"""Warp images and volumes with an affine matrix."""

from __future__ import annotations

from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.data import Batch, DALIDataType, DALIInterpType, DeviceSamples, Spec
from dalify.kernels.images.frames import per_frame_of_samples, visual_layout
from dalify.kernels.images.warp import warp_2d, warp_3d
from dalify.kernels.images.warp_rules import (
    LAYOUTS,
    check_interpolation,
    framed_images,
    framed_shapes,
    framed_spec,
    given_matrices,
    inverted,
    sized_shapes,
    with_size,
)
from dalify.kernels.images.warp_torch import inverted_torch, matrices_torch, warp_samples_torch
from dalify.registry import AnySamples, Canvas, Matrix, PerSampleOrFrame, Vectors, operator


@operator
def warp_affine(
    data: Spec,
    mtx: Spec | None = None,
    /,
    *,
    dtype: DALIDataType | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    inverse_map: bool = True,
    matrix: PerSampleOrFrame[Matrix[list[float]]] | None = None,
    size: Canvas[list[float]] | None = None,
) -> Spec:
    """Warp images and volumes with an affine matrix.

    With ``inverse_map=True`` the matrix maps output points to source points:
    ``out(x, y) = data(m11 * x + m12 * y + m13, m21 * x + m22 * y + m23)``. The origin is the corner of the first
    pixel, whose center is at (0.5, 0.5).

    Args:
        data: images HWC, sequences FHWC, volumes DHWC or FDHWC of any numeric type.
        mtx: the matrix as an input, [2, 3] or [3, 4] per sample, or [F, 2, 3] for frames; instead of `matrix`.
        dtype: type of the result, the input's by default; integers are rounded half away from zero and saturated.
        fill_value: value outside the source; by default the border pixel is repeated.
        interp_type: INTERP_LINEAR or INTERP_NN.
        inverse_map: the matrix maps output to source; False: it maps source to output and is inverted.
        matrix: 6 numbers (12 for volumes) in row-major order; one matrix per sample or per frame.
        size: extents of the result, outermost first, without channels; by default the extents of the input. Constants
            are rounded to at least 1, graph values are truncated.

    Returns:
        Same layout, elements of `dtype`; a sequence, if `mtx` has one matrix for each frame (layout F…).

    Raises:
        LayoutError: the layout is not supported.
        ArgumentValueError: no matrix or two matrices, a singular matrix with ``inverse_map=False``, or an unsupported
            `interp_type`.
        ShapeError: a matrix of the wrong size.

    Example:
        >>> images = fn.warp_affine(images, fn.transforms.rotation(angle=20), fill_value=0)  # doctest: +SKIP
    """
    layout = visual_layout(data, LAYOUTS)
    data = data.replace(layout=layout)
    check_interpolation(interp_type)
    if (mtx is None) == (matrix is None or matrix == ()):
        raise ArgumentValueError("specify the matrix either as the second input or as the argument matrix.")
    data = framed_spec(data, mtx, LAYOUTS)
    return with_size(data.replace(dtype=data.dtype if dtype is None else dtype), data.layout or "", size)


@warp_affine.geometry
def _(data: Batch, mtx: Batch | None, *, size: Vectors | None, spec: Spec) -> dict[str, Any]:
    given = data.shape_array()
    shapes, layout = framed_shapes(given, visual_layout(spec, LAYOUTS), mtx)
    if size is not None:
        return sized_shapes(shapes, layout, size)
    return {} if shapes is given else {"out_shapes": shapes}


@warp_affine.cpu_samples
@warp_affine.gpu_samples
def _(
    out: AnySamples,
    data: AnySamples,
    mtx: AnySamples | None,
    *,
    matrix: Vectors | None,
    inverse_map: bool,
    fill_value: float | None,
    interp_type: DALIInterpType,
    spec: Spec,
) -> None:
    layout = visual_layout(spec, LAYOUTS)
    axes = 3 if "D" in layout else 2
    target, source, out_layout = framed_images(out, data, layout)
    if isinstance(mtx, DeviceSamples):
        maps: Any = matrices_torch(mtx, out, out_layout, axes, axes + 1)
        maps = maps if inverse_map else inverted_torch(maps)
    else:
        given = given_matrices(mtx, matrix, axes + 1)
        rows = per_frame_of_samples(given, out, out_layout, "matrix", axes * (axes + 1))
        maps = rows.reshape(-1, axes, axes + 1)
        maps = maps if inverse_map else inverted(maps)
    warp: Any = warp_samples_torch if isinstance(data, DeviceSamples) else warp_3d if axes == 3 else warp_2d
    warp(target, source, maps, nearest=interp_type == DALIInterpType.INTERP_NN, fill_value=fill_value)
