"""Computes which values halfway between two integers are rounded to even, and which away from zero, in resampling."""

from __future__ import annotations

import math

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.extremes import larger_of, smaller_of
from dalify.data.dtypes import DALIInterpType
from dalify.kernels.images.resample_filters import filter_radius, place_in_whole, select_filter, tap_count

EVEN_PIXELS = 16
"""Minimum width in pixels of images for which the GPU rounds halves to even; in narrower images, it rounds them away
from zero."""

_NEAREST = int(DALIInterpType.INTERP_NN)
# DALI's estimated costs of a pass: of each element of its result, and of each horizontal tap of an element; the cost of
# a vertical tap is 1.
_STORE_COST = 3.0
_HORIZONTAL_COST = 1.4


@njit(nogil=True, cache=True, error_model="numpy", no_cpython_wrapper=True)
def even_range(shape, part, n_in, start, end, min_filter, mag_filter, antialias, others, block):
    """Return the first and the last element, exclusive, between which halves in a part of a row are rounded to even.

    Other halves are rounded away from zero. DALI rounds in the last pass, to even in whole SIMD vectors. These have
    `block` elements of a row in a vertical pass, and `block` pixels in a horizontal pass, except for pixels at the
    border of the image, which are computed one by one. A nearest-neighbor pass has no vectors. The order of the passes
    is the one with the lower estimated cost.

    Args:
        shape: rows, columns and channels of the whole result.
        part: first column and number of columns of the part.
        n_in: number of source columns.
        start: [2], start of the window.
        end: [2], end of the window.
        min_filter: see `select_filter`.
        mag_filter: see `select_filter`.
        antialias: see `filter_radius`.
        others: `has_others` of `axis_taps`.
        block: number of integers in 16 bytes.
    """
    height, width, channels = shape
    left, count = part[0] * channels, part[1] * channels
    rows, columns = abs(end[0] - start[0]), abs(end[1] - start[1])
    row_kind = select_filter(height, start[0], end[0], min_filter, mag_filter)
    row_taps = tap_count(filter_radius(row_kind, height, start[0], end[0], antialias, others))
    kind = select_filter(width, start[1], end[1], min_filter, mag_filter)
    radius = filter_radius(kind, width, start[1], end[1], antialias, others)
    taps = tap_count(radius)
    column_cost = _HORIZONTAL_COST * taps
    vertical_last = rows * width * (column_cost + _STORE_COST) + height * width * row_taps
    horizontal_last = height * columns * (row_taps + _STORE_COST) + height * width * column_cost
    if vertical_last < horizontal_last:
        last = 0 if row_kind == _NEAREST else width * channels // block * block
        return 0, smaller_of(larger_of(last - left, 0), count)
    if kind == _NEAREST:
        return 0, 0
    scale = np.float32((end[1] - start[1]) / np.float32(width))
    origin = np.float32(start[1] + np.float32(np.float32(0.5) * scale - np.float32(0.5) - radius))
    first, last = 0, width
    for i in range(width):
        low = math.ceil(np.float32(np.float32(i) * scale + origin))
        if low >= 0 and low + taps <= n_in:
            last = i + 1
        elif first == i:
            first = last = i + 1
    last = first + (last - first) // block * block
    first, last = larger_of(first * channels - left, 0), larger_of(last * channels - left, 0)
    return smaller_of(first, count), smaller_of(last, count)


@njit(nogil=True, cache=True)
def round_to_even(
    out_at, out_shapes, out_like, x_shapes, start, end, min_filter, mag_filter, parts, antialias, others, block
):
    """Round the values in `even_range` of images, or of the slices of volumes."""
    for n in range(len(out_at)):
        width, channels = out_shapes[n, -2], out_shapes[n, -1]
        rows, _ = place_in_whole(parts, n, 0, out_shapes[n, -3])
        columns, left = place_in_whole(parts, n, 1, width)
        first, last = even_range(
            (rows, columns, channels), (left, width), x_shapes[n, -2], start[n, -2:], end[n, -2:], min_filter[n],
            mag_filter[n], antialias, others, block,
        )  # fmt: skip
        size = width * channels
        count = np.prod(out_shapes[n]) // size
        out = array_at(out_at[n], (count, size), out_like)
        for i in range(count):
            row = out[i, first:last]
            for j in range(row.size):
                row[j] = np.rint(row[j])
