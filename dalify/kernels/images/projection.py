"""The source points of projective transforms, mapped into the image according to a border mode."""

from __future__ import annotations

import math

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.data.samples import Samples

_BORDERS = ("", "wrap", "reflect", "reflect_101")
_WRAP, _REFLECT = 1, 2


@njit(nogil=True, inline="always", error_model="numpy")
def _modulo(value, period):
    """Return NumPy's remainder of a float32: between 0 and `period`."""
    rest = np.float32(np.fmod(value, period))
    if rest < 0:
        rest = rest + period
    return rest + np.float32(0)  # not -0


@njit(nogil=True, cache=True, error_model="numpy")
def _fold(point, extent, border):
    """Map a coordinate relative to the corner of the image into the image."""
    size, half, one = np.float32(extent), np.float32(0.5), np.float32(1)
    if border == _WRAP:
        return _modulo(point, size) + one  # the image is padded by one pixel
    if border == _REFLECT:
        return size - abs(size - _modulo(point, size + size))
    if extent == 1:
        return point * np.float32(0) + half
    last = np.float32(extent - 1)
    return last - abs(last - _modulo(point - half, last + last)) + half


@njit(nogil=True, inline="always", error_model="numpy")
def _quotient(value, divisor):
    """Return a coordinate; -2 if the quotient is not finite."""
    found = value / divisor
    return np.float32(found) if math.isfinite(found) else np.float32(-2)


@njit(nogil=True, cache=True, error_model="numpy")
def _project(x_at, y_at, shapes, like, matrices, sizes, border):
    for n in range(len(x_at)):
        form, m = (shapes[n, 0], shapes[n, 1]), matrices[n]
        points_x, points_y = array_at(x_at[n], form, like), array_at(y_at[n], form, like)
        for row in range(shapes[n, 0]):
            y = row + 0.5
            for column in range(shapes[n, 1]):
                x = column + 0.5
                divisor = m[2, 0] * x + m[2, 1] * y + m[2, 2]
                to_x = _quotient(m[0, 0] * x + m[0, 1] * y + m[0, 2], divisor)
                to_y = _quotient(m[1, 0] * x + m[1, 1] * y + m[1, 2], divisor)
                if border:
                    to_x, to_y = _fold(to_x, sizes[n, 1], border), _fold(to_y, sizes[n, 0], border)
                points_x[row, column], points_y[row, column] = to_x, to_y


def projected_points(
    shapes: np.ndarray, matrices: np.ndarray, sizes: np.ndarray, border_mode: str = ""
) -> tuple[Samples, Samples]:
    """Map the pixel centers of images by projective transforms, on the CPU.

    Args:
        shapes: height and width of each result, int64 [N, 2].
        matrices: [N, 3, 3].
        sizes: height and width of each source, int64 [N, 2].
        border_mode: how coordinates are mapped into the source: "wrap", for a source that is padded by one pixel,
            "reflect" or "reflect_101"; "" does not change them.

    Returns:
        N samples [H, W] of float32 for x, and for y, relative to the corner of the first pixel; without `border_mode`,
        coordinates that are not finite are -2.
    """
    forms, dtype = np.ascontiguousarray(shapes), np.dtype(np.float32)
    points = Samples.empty(forms, dtype), Samples.empty(forms, dtype)
    wide = np.ascontiguousarray(matrices, np.float64)
    _project(points[0].addresses, *points[1].compiled, wide, np.ascontiguousarray(sizes), _BORDERS.index(border_mode))
    return points
