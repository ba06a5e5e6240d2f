"""Rotation matrices, and the canvas of a rotated image or volume.

Points are (x, y) or (x, y, z).
"""

from __future__ import annotations

import math

import numpy as np

from dalify.base.array_at import new_array
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError
from dalify.kernels.arrays.frozen import read_only

_RADIANS = np.float32(math.pi / 180)
_TOLERANCE = 0.01  # pixels that a rotated image may exceed its canvas by, so that rounding errors do not add a pixel
_NO_AXES = np.empty((0, 3), np.float32)


def rotations(angles: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    """Return rotation matrices, float64 [M, 2, 2] or, with axes, [M, 3, 3] with float32 precision.

    Args:
        angles: float32 [M], degrees; positive from x to y, which is clockwise if y points down.
        axes: float32 [M, 3], the axes (x, y, z) to rotate about, of any length except 0 (Rodrigues' formula).

    Raises:
        ArgumentValueError: an angle is not finite, or an axis has length 0. Its `sample` is the index of the matrix.
    """
    size = 2 if axes is None else 3
    matrices = np.empty((len(angles), size, size))
    wrong = _fill_rotations(matrices, read_only(angles), read_only(_NO_AXES if axes is None else axes))
    if wrong < len(angles):
        if not np.isfinite(angles[wrong] * _RADIANS):
            text = f"an angle must be a finite number of degrees; got {angles[wrong]:g}."
            raise ArgumentValueError(text, sample=wrong)
        raise ArgumentValueError("axis must not be zero; got [0, 0, 0].", sample=wrong)
    return matrices


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True, error_model="numpy")
def _fill_rotations(matrices, angles, axes):
    """Fill matrices; return the index of the first one with an invalid angle or axis, or the number of matrices."""
    one = np.float32(1)
    for m in range(len(angles)):
        # In float32 as in DALI: at 45 degrees the last bit decides which axis is the dominant one.
        radians = np.float64(angles[m] * _RADIANS)
        if not math.isfinite(radians):
            return m
        cosine, sine = math.cos(radians), math.sin(radians)
        if len(axes) == 0:
            matrices[m, 0, 0] = matrices[m, 1, 1] = cosine
            matrices[m, 0, 1], matrices[m, 1, 0] = -sine, sine
            continue
        # In float32 and in this order, as in DALI: the last bit selects one of two voxels at equal distance.
        x, y, z = axes[m, 0], axes[m, 1], axes[m, 2]
        length = np.sqrt(x * x + y * y + z * z)
        x, y, z = x / length, y / length, z / length
        c, s = np.float32(cosine), np.float32(sine)
        rest = one - c
        xx, yy, zz = x * x, y * y, z * z
        xy, xz, yz = x * y * rest, x * z * rest, y * z * rest
        matrices[m, 0, 0], matrices[m, 0, 1], matrices[m, 0, 2] = xx + c * (yy + zz), xy - z * s, xz + y * s
        matrices[m, 1, 0], matrices[m, 1, 1], matrices[m, 1, 2] = xy + z * s, yy + c * (xx + zz), yz - x * s
        matrices[m, 2, 0], matrices[m, 2, 1], matrices[m, 2, 2] = xz - y * s, yz + x * s, zz + c * (xx + yy)
        if matrices[m, 0, 0] != matrices[m, 0, 0]:  # all are NaN for an axis without length
            return m
    return len(angles)


def canvas_shapes(shapes: np.ndarray, first: int, matrices: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the smallest canvases that contain rotated images; each axis has the parity of its dominant source axis.

    With the same parity, rotations by 90 degrees are exact.

    Args:
        shapes: int64 [N, ndim], shapes of the images or volumes.
        first: the first of the k rotated axes, which are H, W or D, H, W.
        matrices: [M, k, k], rotations of the frames of all samples; a canvas contains all frames of its sample, and
            has the parity of the majority.
        counts: int64 [N], number of frames of each sample.

    Returns:
        shapes of the canvases, int64 [N, ndim].
    """
    found = shapes.copy()
    _fill_canvases(found, first, matrices, read_only(counts))
    return found


@njit(cache=True)
def _fill_canvases(found, first_axis, matrices, counts):
    """Replace the shapes of images by those of their canvases."""
    axes, first = matrices.shape[1], 0
    last_axis = first_axis + axes - 1
    canvas = new_array((axes,), np.int64)
    for n in range(len(found)):
        last = first + counts[n]
        for row in range(axes):
            largest, odd = 0.0, 0
            for m in range(first, last):
                extent = 0.0
                # A tie selects the axis itself in a volume, and the other one in an image.
                dominant = row if axes == 3 else 1 - row
                share = abs(matrices[m, row, dominant])
                for axis in range(axes):
                    part = abs(matrices[m, row, axis])
                    extent += part * found[n, last_axis - axis]
                    if part > share:
                        dominant, share = axis, part
                largest = extent if extent > largest else largest
                odd += found[n, last_axis - dominant] % 2
            whole = np.int64(math.ceil(largest - _TOLERANCE))
            parity = np.int64(2 * odd > counts[n])
            canvas[row] = whole + (whole - parity) % 2
        if counts[n]:
            for row in range(axes):
                found[n, last_axis - row] = canvas[row]
        first = last


def about_centers(
    matrices: np.ndarray, shapes: np.ndarray, out_shapes: np.ndarray, *, transposed: bool = False
) -> np.ndarray:
    """Return affine transforms with the given linear parts that map the centers of canvases to those of the sources.

    Args:
        matrices: [N, k, k], from canvas to source.
        shapes: int64 [N, at least k], shapes of the sources; the first k extents are H, W or D, H, W.
        out_shapes: int64 [N, at least k], shapes of the canvases.
        transposed: use the transposed matrices, which are the inverse rotations.

    Returns:
        [N, k, k + 1], computed and returned in the dtype of the matrices.
    """
    count, axes = matrices.shape[:2]
    found = np.empty((count, axes, axes + 1), matrices.dtype)
    _fill_about_centers(found, matrices, read_only(shapes), read_only(out_shapes), transposed)
    return found


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _fill_about_centers(found, matrices, shapes, out_shapes, transposed):
    axes, real = matrices.shape[1], found.dtype.type
    for n in range(len(found)):
        for row in range(axes):
            moved = real(0)
            for axis in range(axes):
                weight = matrices[n, axis, row] if transposed else matrices[n, row, axis]
                found[n, row, axis] = weight
                moved += weight * (real(out_shapes[n, axes - 1 - axis]) / real(2))
            found[n, row, axes] = real(shapes[n, axes - 1 - row]) / real(2) - moved
