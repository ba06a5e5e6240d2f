"""Computes the source pixels and weights of output pixels along one axis.

An axis of `n_in` pixels is resampled through a window [start, end) in pixel edges: output pixel i has its center at
``c = start + (i + 0.5) * (end - start) / n_out - 0.5`` in pixel centers, and a filter with radius r weights the pixels
``ceil(c - r) ... ceil(c - r) + ceil(2 r) - 1`` by their distance from c. Pixels outside the window are used; outside
the image, its edge is repeated. The weights of an output pixel sum to 1. With antialiasing, the radius is multiplied by
the scale of a reduction.
"""

# Numba omits branches for arguments that are None. Names that are assigned and used under the same condition are
# possibly unbound for pyright only; assigning them always would add 3 % to the compilation of a first resize.
# pyright: reportPossiblyUnboundVariable=false

from __future__ import annotations

import math

import numpy as np

from dalify.base.array_at import new_array
from dalify.base.compiling import njit
from dalify.base.extremes import larger_of, smaller_of
from dalify.data.dtypes import DALIInterpType

_NEAREST = int(DALIInterpType.INTERP_NN)
_LINEAR = int(DALIInterpType.INTERP_LINEAR)
_CUBIC = int(DALIInterpType.INTERP_CUBIC)
_LANCZOS = int(DALIInterpType.INTERP_LANCZOS3)
_TRIANGULAR = int(DALIInterpType.INTERP_TRIANGULAR)
_GAUSSIAN = int(DALIInterpType.INTERP_GAUSSIAN)

# Curved filters are piecewise linear tables with as many points as DALI's. With exact curves, results would differ from
# DALI's by up to 4e-4 of the range.
_POINTS_PER_UNIT = 32
_POINTS = 2 * _POINTS_PER_UNIT  # number of points of the Gaussian
_ROOT_OF_TWO = math.sqrt(2.0)
_LARGEST_RADIUS = 3  # Lanczos


def _cubic(distance: np.ndarray) -> np.ndarray:
    """Return Keys' cubic convolution kernel with a = -0.5 (IEEE Trans. ASSP 29(6), 1981)."""
    d = np.abs(distance)
    inner = (1.5 * d - 2.5) * d * d + 1.0
    outer = ((-0.5 * d + 2.5) * d - 4.0) * d + 2.0
    return np.where(d > 1.0, outer, inner)


def _points(radius: int) -> np.ndarray:
    return np.linspace(-radius, radius, 2 * radius * _POINTS_PER_UNIT + 1)


def _table(curve: np.ndarray) -> np.ndarray:
    # With the zeros, the last segment ends at 0, which the Gaussian does not reach.
    return np.append(curve, [0.0, 0.0]).astype(np.float32)


_CUBIC_TABLE = _table(_cubic(_points(2)))
_LANCZOS_TABLE = _table(np.sinc(_points(3)) * np.sinc(_points(3) / 3))
# Standard deviation radius / (2 sqrt 2), truncated at the radius.
_GAUSSIAN_TABLE = _table(np.exp(-((2 * _points(1)) ** 2)))


def curve_tables() -> dict[int, np.ndarray]:
    """Return the points of the curved filters by DALIInterpType, float32; the last two points of each are zeros."""
    return {_CUBIC: _CUBIC_TABLE, _LANCZOS: _LANCZOS_TABLE, _GAUSSIAN: _GAUSSIAN_TABLE}


@njit(nogil=True, inline="always")
def select_filter(size, start, end, min_filter, mag_filter):
    """Return `min_filter` if the window is reduced to `size` pixels, else `mag_filter`."""
    return min_filter if size < abs(end - start) else mag_filter


@njit(nogil=True, inline="always")
def filter_radius(kind, size, start, end, antialias, has_others):
    """Return the radius of a filter in source pixels (float32); 0 for nearest neighbor.

    `has_others`: see `axis_taps`.
    """
    grow = np.float32(1)
    if antialias:
        scale = np.float32(abs(end - start) / np.float32(size))
        grow = larger_of(scale, grow)
    if has_others is None:
        return grow
    if kind == _NEAREST:
        return np.float32(0)
    if kind == _CUBIC:
        return grow * np.float32(2)
    if kind == _LANCZOS:
        return grow * np.float32(3)
    if kind == _GAUSSIAN:
        # DALI converts to the standard deviation and back in float32, so 1 becomes slightly less than 1. This affects
        # which pixel is used if two are exactly at the ends of the filter.
        deviation = np.float32(np.float64(grow * np.float32(0.5)) / _ROOT_OF_TWO)
        points_per_pixel = np.float32(_POINTS) / (np.float32(4 * _ROOT_OF_TWO) * deviation)
        return np.float32(_POINTS // 2) / points_per_pixel
    return grow


def pixels_read(extents: np.ndarray, start: np.ndarray, end: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return windows that contain all pixels that any filter reads.

    Args:
        extents: extents of the sources, int64 [N, 2].
        start: start of the resampled windows, [N, 2].
        end: end of the resampled windows, [N, 2]; may be before `start`.
        sizes: extents of the results, int [N, 2] or [2].

    Returns:
        starts and extents inside of the sources, int64 [N, 4].
    """
    first, last = np.minimum(start, end), np.maximum(start, end)
    reach = np.maximum((last - first) / np.maximum(sizes, 1), 1.0) * _LARGEST_RADIUS + 1
    found = np.empty((len(extents), 4), np.int64)
    # For windows outside of the image, its edge is read. `np.clip` takes twice as long for small arrays.
    found[:, :2] = np.minimum(np.maximum(first - reach, 0), extents - 1)
    found[:, 2:] = np.minimum(np.maximum(np.ceil(last + reach), 1), extents)
    found[:, 2:] -= found[:, :2]
    return found


@njit(nogil=True, inline="always")
def tap_count(radius):
    """Return the number of taps of a filter with this radius."""
    count = math.ceil(np.float32(2) * radius)
    return larger_of(count, 1)


# Without slice assignments, for which numba also compiles the formatting of an error message.
@njit(nogil=True, cache=True, error_model="numpy", no_cpython_wrapper=True)
def axis_taps(n_in, n_out, begin, start, end, kind, radius, is_accumulated, first, weights, has_others):
    """Fill the taps of one axis, or of a part of its output pixels.

    Args:
        n_in: number of source pixels, at least 1.
        n_out: number of output pixels of the window.
        begin: the first output pixel that is filled; it can be outside of the window.
        start: start of the window, float32 pixel edges.
        end: end of the window; smaller than `start` mirrors.
        kind: filter, a DALIInterpType.
        radius: radius from `filter_radius`.
        is_accumulated: whether nearest-neighbor positions are a running sum, as in DALI for all axes except the last.
        first: output, int64 [count]: the first source pixel of each output pixel, so that all taps are inside.
        weights: output, float32 [count, taps], at least min(tap_count(radius), n_in) taps; additional ones are 0.
        has_others: True, or None if the filter is linear or triangular: numba omits the code that None excludes.
    """
    taps = tap_count(radius)
    used = smaller_of(taps, n_in)
    scale = np.float32((end - start) / np.float32(n_out))
    # Positions are float32, computed in DALI's order: for exact ties, other roundings would select another pixel.
    origin = np.float32(start + np.float32(np.float32(0.5) * scale - np.float32(0.5) - radius))
    if has_others is not None:
        at = np.float32(start + np.float32(0.5) * scale)
        table = _LANCZOS_TABLE if kind == _LANCZOS else _GAUSSIAN_TABLE if kind == _GAUSSIAN else _CUBIC_TABLE
        is_curved = kind != _NEAREST and kind != _LINEAR and kind != _TRIANGULAR
        points_per_pixel = np.float32(table.size - 3) / (np.float32(2) * radius)
        if is_accumulated:
            for _ in range(begin):
                at = np.float32(at + scale)
            for _ in range(-begin):
                at = np.float32(at - scale)
    for i in range(first.size):
        row = weights[i]
        for k in range(row.size):
            row[k] = 0
        if has_others is not None:  # noqa: SIM102 -- alone: what numba omits is decided by None only
            if kind == _NEAREST:
                if not is_accumulated:
                    at = np.float32(start + (np.float32(begin + i) + np.float32(0.5)) * scale)
                low = math.floor(at)
                first[i] = smaller_of(larger_of(low, 0), n_in - 1)
                row[0] = 1
                at = np.float32(at + scale)
                continue
        left = np.float32(np.float32(begin + i) * scale + origin)
        low = math.ceil(left)
        offset = np.float32(np.float32(low) - left)
        lowest = smaller_of(larger_of(low, 0), n_in - used)
        first[i] = lowest
        total = np.float32(0)
        for k in range(taps):
            from_left = offset + np.float32(k)
            weight = np.float32(1) - abs(from_left / radius - np.float32(1))
            weight = larger_of(weight, np.float32(0))
            if has_others is not None:  # noqa: SIM102
                if is_curved:
                    place = from_left * points_per_pixel
                    weight = np.float32(0)
                    if place >= 0 and place < table.size - 2:
                        whole = np.int64(place)
                        weight = table[whole] + (table[whole + 1] - table[whole]) * (place - np.float32(whole))
            pixel = smaller_of(larger_of(low + k, 0), n_in - 1)
            row[pixel - lowest] += weight
            total += weight
        for k in range(used):
            row[k] /= total


@njit(nogil=True, inline="always")
def place_in_whole(parts, n, axis, count):
    """Return the number of rows or columns of the whole result, and the first of the `count` computed ones.

    `parts`: see `Windows`.
    """
    size, begin = count, np.int64(0)
    if parts.shape[0] > 0:
        size, begin = parts[n, axis], parts[n, 2 + axis]
    return size, begin


@njit(nogil=True, cache=True, error_model="numpy", no_cpython_wrapper=True)
def new_taps(
    n_in, n_out, begin, count, start, end, min_filter, mag_filter, antialias, is_accumulated, is_even, has_others
):
    """Return the number of taps of `count` output pixels, the first source pixels, int64 [count], and the weights.

    The weights are float32 [count, taps]; if `is_even`, a tap with weight 0 is added to an odd number of taps. For the
    other arguments, see `axis_taps`.
    """
    kind = select_filter(n_out, start, end, min_filter, mag_filter)
    radius = filter_radius(kind, n_out, start, end, antialias, has_others)
    taps = tap_count(radius)
    taps = smaller_of(taps, n_in)
    first, weights = new_array((count,), np.int64), new_array((count, taps + (taps & is_even)), np.float32)
    axis_taps(n_in, n_out, begin, start, end, kind, radius, is_accumulated, first, weights, has_others)
    return taps, first, weights


def axis_weights(
    n_in: int,
    n_out: int,
    start: float,
    end: float,
    *,
    min_filter: int,
    mag_filter: int,
    antialias: bool,
    is_last: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the taps of one axis.

    Args:
        n_in: number of source pixels, at least 1.
        n_out: number of result pixels, at least 1.
        start: start of the window, in pixel edges.
        end: end of the window; smaller than `start` mirrors.
        min_filter: filter for a reduction, a DALIInterpType.
        mag_filter: filter otherwise.
        antialias: whether to widen the filter by the scale of a reduction.
        is_last: whether this is the last spatial axis, see `axis_taps`.

    Returns:
        first source pixel, int64 [n_out], and weights, float32 [n_out, taps].
    """
    begin, stop = np.float32(start), np.float32(end)
    first, weights = _taps(n_in, n_out, begin, stop, min_filter, mag_filter, antialias, not is_last)
    return first, weights


@njit(cache=True)
def _taps(n_in, n_out, start, end, min_filter, mag_filter, antialias, is_accumulated):
    _, first, weights = new_taps(
        n_in,
        n_out,
        np.int64(0),
        n_out,
        start,
        end,
        min_filter,
        mag_filter,
        antialias,
        is_accumulated,
        np.bool_(False),
        True,
    )
    return first, weights
