"""Layouts, sizes, interpolation and matrix arguments of rotate, warp_affine and warp_perspective."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, check_option
from dalify.data.batch import Batch
from dalify.data.dtypes import DALIInterpType
from dalify.data.samples import Samples
from dalify.data.spec import Spec
from dalify.kernels.arrays.joined import joined
from dalify.kernels.images.frames import flat_matrices, folded_frames, visual_layout

LAYOUTS = ("HWC", "FHWC", "DHWC", "FDHWC")
LARGEST_SIZE = 2.0**62  # of an extent, so that it fits into int64


def check_interpolation(interp_type: DALIInterpType) -> None:
    """Raise ArgumentValueError for anything except nearest and linear."""
    options = (DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR)
    check_option("interp_type", interp_type, options)


def given_matrices(matrix_input: Samples | None, matrix: Any, columns: int) -> Any:
    """Return the matrices of samples, of an input or else of an argument; see `flat_matrices`."""
    given = matrix
    if matrix_input is not None and matrix_input.is_uniform:
        given = joined(matrix_input).astype(np.float32).reshape(len(matrix_input), *matrix_input.shapes[0])
    elif matrix_input is not None:
        given = [np.asarray(one, np.float32) for one in matrix_input.arrays()]
    return flat_matrices(given, columns, "matrix")


def framed_spec(x: Spec, matrices: Spec | None, layouts: Sequence[str]) -> Spec:
    """Return the spec of images; of sequences if the matrices are an input with one for each frame.

    Raises:
        LayoutError: there is no such sequence among `layouts`.
    """
    if matrices is None or not (matrices.layout or "").startswith("F") or (x.layout or "").startswith("F"):
        return x
    framed = Spec(x.dtype, None if x.ndim is None else x.ndim + 1, f"F{x.layout}", None, x.device)
    visual_layout(framed, layouts)
    return framed


def framed_shapes(shapes: np.ndarray, layout: str, matrices: Batch | None) -> tuple[np.ndarray, str]:
    """Return shapes int64 [N, ndim] and layout of the images that `framed_spec` describes."""
    if matrices is None or not matrices.layout.startswith("F") or layout.startswith("F"):
        return shapes, layout
    return np.concatenate([matrices.shape_array()[:, :1], shapes], axis=1), f"F{layout}"


def framed_images(out: Any, x: Any, layout: str) -> tuple[Any, Any, str]:
    """Return the frames of results and inputs, and the layout of the results; see `framed_spec`.

    Args:
        out: `Samples` or `DeviceSamples`.
        x: the same; single images are repeated for the frames of their results.
        layout: of `x`.
    """
    if out.ndim > x.ndim:
        target, owners = out.folded(1)
        return target, x.take(owners), f"F{layout}"
    return folded_frames(out, layout), folded_frames(x, layout), layout


def with_size(x: Spec, layout: str, size: Any) -> Spec:
    """Return the spec with another canvas size.

    Args:
        x: spec of the input.
        layout: its layout, with letters for all axes.
        size: extents, outermost first, truncated to integers; empty or None keeps the size; VARIES is ignored.

    Raises:
        ArgumentValueError: the number of extents is wrong, or one is negative.
    """
    axes = len(layout) - 1 - layout.startswith("F")
    if isinstance(size, tuple) and size:
        if len(size) != axes:
            raise ArgumentValueError(f"size must have {axes} extents for {layout}; got {len(size)}.")
        if min(size) < 0:
            raise ArgumentValueError(f"size must not be negative; got {list(size)}.")
    if x.shape is None or not isinstance(size, tuple) or not size:
        return x
    return x.replace(shape=(*x.shape[: layout.startswith("F")], *map(int, size), x.shape[-1]))


def sized_shapes(shapes: np.ndarray, layout: str, size: Any) -> dict[str, Any]:
    """Return the shapes of `with_size` for a chunk, as the result of ``prepare``.

    Args:
        shapes: shapes of the sources, int64 [N, ndim].
        layout: layout of a sample, with letters for all axes.
        size: extents, [N, axes], or a list of vectors.

    Returns:
        the shapes; nothing for invalid extents, for which the rule raises an error.
    """
    first = int(layout.startswith("F"))
    if isinstance(size, list) or size.shape[1] != shapes.shape[1] - 1 - first:
        return {}
    if not ((size >= 0) & (size < LARGEST_SIZE)).all():
        return {}
    out_shapes = shapes.copy()
    out_shapes[:, first:-1] = size
    return {"out_shapes": out_shapes}


def rounded_extent(extent: float) -> int:
    """Return a number of pixels: rounded, but at least 1 for positive extents."""
    return max(math.floor(extent + 0.5), math.ceil(min(extent, 1)))


def inverted(matrices: np.ndarray) -> np.ndarray:
    """Invert affine [N, k, k + 1] or square maps.

    Raises:
        ArgumentValueError: a matrix is singular.
    """
    matrices = matrices.astype(np.float64)
    try:
        if matrices.shape[1] == matrices.shape[2]:
            return np.linalg.inv(matrices)
        linear = np.linalg.inv(matrices[:, :, :-1])
        return np.concatenate([linear, -linear @ matrices[:, :, -1:]], axis=2)
    except np.linalg.LinAlgError:
        raise ArgumentValueError(
            "matrix is singular, but inverse_map=False needs its inverse.",
            hint="Pass a matrix with a nonzero determinant, or a map from output to input with inverse_map=True.",
        ) from None
