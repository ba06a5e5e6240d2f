"""Which source pixels an output pixel is made of, and with what weights, along one axis.

Alone in a file because the CPU and the GPU resample share it: both compute these small tables here and differ only in
how they apply them.

An axis of `n_in` pixels is resampled through a window [start, end) in pixel edges: output pixel i has its centre at
``c = start + (i + 0.5) * (end - start) / n_out - 0.5`` in pixel centres, and a filter of radius r weighs the pixels
``ceil(c - r) ... ceil(c - r) + ceil(2 r) - 1`` by their distance from c. Pixels outside the window are read; pixels
outside the image repeat its border. The weights of one output pixel add up to 1. With antialiasing the radius grows
with the scale of a reduction.
"""

from __future__ import annotations

import math

import numpy as np

from dalify.base.compiling import njit
from dalify.data.dtypes import DALIInterpType

__all__ = ["axis_taps", "axis_weights", "choose_filter", "filter_radius", "tap_count"]

_NEAREST = int(DALIInterpType.INTERP_NN)
_LINEAR = int(DALIInterpType.INTERP_LINEAR)
_CUBIC = int(DALIInterpType.INTERP_CUBIC)
_LANCZOS = int(DALIInterpType.INTERP_LANCZOS3)
_TRIANGULAR = int(DALIInterpType.INTERP_TRIANGULAR)
_GAUSSIAN = int(DALIInterpType.INTERP_GAUSSIAN)

# Curved filters are tables with straight lines between their points, as many as DALI has: its results differ from the
# exact curve by up to 4e-4 of the range, more than the promise for floats allows.
_POINTS_PER_UNIT = 32
_POINTS = 2 * _POINTS_PER_UNIT  # of the Gaussian, from end to end
_ROOT_OF_TWO = math.sqrt(2.0)


def _cubic(distance: np.ndarray) -> np.ndarray:
    """Keys' cubic convolution with a = -0.5 (IEEE Trans. ASSP 29(6), 1981)."""
    d = np.abs(distance)
    inner = (1.5 * d - 2.5) * d * d + 1.0
    outer = ((-0.5 * d + 2.5) * d - 4.0) * d + 2.0
    return np.where(d > 1.0, outer, inner)


def _points(radius: int) -> np.ndarray:
    return np.linspace(-radius, radius, 2 * radius * _POINTS_PER_UNIT + 1)


def _table(curve: np.ndarray) -> np.ndarray:
    # The zeros let a table end with a straight line too: the Gaussian does not fall to 0 by itself.
    return np.append(curve, [0.0, 0.0]).astype(np.float32)


_CUBIC_TABLE = _table(_cubic(_points(2)))
_LANCZOS_TABLE = _table(np.sinc(_points(3)) * np.sinc(_points(3) / 3))
# Standard deviation radius / (2 sqrt 2), cut off at the radius.
_GAUSSIAN_TABLE = _table(np.exp(-((2 * _points(1)) ** 2)))


@njit(nogil=True, cache=True)
def choose_filter(size, start, end, min_filter, mag_filter):
    """Return `min_filter` where the window shrinks to `size` pixels, else `mag_filter`."""
    return min_filter if size < abs(end - start) else mag_filter


@njit(nogil=True, cache=True, error_model="numpy")
def filter_radius(kind, size, start, end, antialias):
    """Return the radius of a filter in source pixels (float32); 0 for nearest neighbour."""
    grow = np.float32(1)
    if antialias:
        scale = np.float32(abs(end - start) / np.float32(size))
        grow = scale if scale > grow else grow
    if kind == _NEAREST:
        return np.float32(0)
    if kind == _CUBIC:
        return grow * np.float32(2)
    if kind == _LANCZOS:
        return grow * np.float32(3)
    if kind == _GAUSSIAN:
        # DALI goes by the standard deviation and back, in float32: 1 becomes a little less than 1. That decides which
        # of the two pixels at the ends of the filter is taken where both lie exactly there.
        deviation = np.float32(np.float64(grow * np.float32(0.5)) / _ROOT_OF_TWO)
        points_per_pixel = np.float32(_POINTS) / (np.float32(4 * _ROOT_OF_TWO) * deviation)
        return np.float32(_POINTS // 2) / points_per_pixel
    return grow


@njit(nogil=True, cache=True)
def tap_count(radius):
    """Return the number of pixels that a filter of this radius weighs."""
    count = math.ceil(np.float32(2) * radius)
    return count if count > 1 else 1


# Comparisons instead of `min` and `max`, and loops instead of assignments to slices, in this function and others that
# the first batch compiles: numba compiles each of the former as a function of its own, and for the latter an error
# message about shapes with all that formats it.
@njit(nogil=True, cache=True, error_model="numpy")
def axis_taps(n_in, start, end, kind, radius, is_accumulated, first, weights):
    """Fill the taps of one axis.

    Args:
        n_in: pixels of the source, at least 1.
        start: where the window begins, float32 pixel edges.
        end: where it ends; smaller than `start` mirrors.
        kind: filter, a DALIInterpType.
        radius: from `filter_radius`.
        is_accumulated: positions of nearest neighbours are a running sum, as DALI has them on all axes but the last.
        first: int64 [n_out], to fill: the first source pixel of each output pixel, so that all taps are inside.
        weights: float32 [n_out, taps], to fill, at least min(tap_count(radius), n_in) taps; those beyond get 0.
    """
    n_out = first.size
    taps = tap_count(radius)
    used = taps if taps < n_in else n_in
    scale = np.float32((end - start) / np.float32(n_out))
    # Positions are float32, and computed in DALI's order: at exact ties another rounding would choose another pixel.
    is_nearest = kind == _NEAREST
    at = np.float32(start + np.float32(0.5) * scale)
    origin = np.float32(start + np.float32(np.float32(0.5) * scale - np.float32(0.5) - radius))
    table = _LANCZOS_TABLE if kind == _LANCZOS else _GAUSSIAN_TABLE if kind == _GAUSSIAN else _CUBIC_TABLE
    is_curved = kind != _NEAREST and kind != _LINEAR and kind != _TRIANGULAR
    points_per_pixel = np.float32(table.size - 3) / (np.float32(2) * radius)
    for i in range(n_out):
        row = weights[i]
        for k in range(row.size):
            row[k] = 0
        if is_nearest:
            if not is_accumulated:
                at = np.float32(start + (np.float32(i) + np.float32(0.5)) * scale)
            low = math.floor(at)
            first[i] = 0 if low < 0 else low if low < n_in else n_in - 1
            row[0] = 1
            at = np.float32(at + scale)
            continue
        left = np.float32(np.float32(i) * scale + origin)
        low = math.ceil(left)
        offset = np.float32(np.float32(low) - left)
        begin = 0 if low < 0 else low
        begin = begin if begin < n_in - used else n_in - used
        first[i] = begin
        total = np.float32(0)
        for k in range(taps):
            from_left = offset + np.float32(k)
            if is_curved:
                place = from_left * points_per_pixel
                weight = np.float32(0)
                if place >= 0 and place < table.size - 2:
                    whole = int(place)
                    weight = table[whole] + (table[whole + 1] - table[whole]) * (place - np.float32(whole))
            else:
                weight = np.float32(1) - abs(from_left / radius - np.float32(1))
                weight = weight if weight > 0 else np.float32(0)
            pixel = 0 if low + k < 0 else low + k if low + k < n_in else n_in - 1
            row[pixel - begin] += weight
            total += weight
        for k in range(used):
            row[k] /= total


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
        n_in: pixels of the source, at least 1.
        n_out: pixels of the result, at least 1.
        start: where the window begins, in pixel edges.
        end: where it ends; smaller than `start` mirrors.
        min_filter: filter where the window shrinks, a DALIInterpType.
        mag_filter: filter elsewhere.
        antialias: widen the filter with the scale of a reduction.
        is_last: whether this is the last spatial axis, see `axis_taps`.

    Returns:
        first source pixel, int64 [n_out], and weights, float32 [n_out, taps].
    """
    begin, stop = np.float32(start), np.float32(end)
    kind = choose_filter(n_out, begin, stop, min_filter, mag_filter)
    radius = filter_radius(kind, n_out, begin, stop, antialias)
    first = np.empty(n_out, np.int64)
    weights = np.empty((n_out, min(tap_count(radius), n_in)), np.float32)
    axis_taps(n_in, begin, stop, kind, radius, not is_last, first, weights)
    return first, weights
