"""Affine and projective warps of images and volumes: a matrix maps every output pixel to its source point.

Coordinates are relative to the corner of the first pixel: the center of pixel ``i`` is at ``i + 0.5``.

For uint8 with three channels, the values of a pixel are packed into one 64-bit word, 21 bits apart, so that one
multiplication weights all three channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dalify.base.array_at import array_at, new_array
from dalify.base.compiling import njit
from dalify.base.small_arrays import all_of
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import saturate_cast, saturate_cast_samples, to_uint8

# Products of weights of 13 bits and bytes have 21 bits, the size of a lane.
_LANE_HALF = np.uint64(4096 | 4096 << 21 | 4096 << 42)
_U1, _U2, _U3 = np.uint64(1), np.uint64(2), np.uint64(3)
_SHIFT_0, _SHIFT_1, _SHIFT_2 = np.uint64(13), np.uint64(34), np.uint64(55)
_PART = 256  # pixels of a row
_NO_MATRIX = np.empty((0, 2, 3))
_NO_POINTS = np.empty((0, 2), np.int64)
_COORDINATE = np.empty(0, np.float32)
_LANE_1, _LANE_2 = np.uint64(21), np.uint64(42)


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _weigh(a, b, d, e, low, high_x, high_y, width, offset, weight_01, weight_10, weight_11):
    """Fill offsets and weights of one output row, in a function without gathering, so that the loop is vectorized."""
    one = np.float32(8192)
    for i in range(offset.size):
        sx = min(max(a + d * np.float32(i), low), high_x) - low
        sy = min(max(b + e * np.float32(i), low), high_y) - low
        column, row = np.int32(sx), np.int32(sy)
        fx, fy = sx - np.float32(column), (sy - np.float32(row)) * one
        both = np.int32(fx * fy)
        offset[i] = np.int32(np.int32(row * width) + column)
        weight_01[i] = np.int32(fx * (one - fy))
        weight_10[i] = np.int32(np.int32(fy) - both)
        weight_11[i] = both


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _weigh_points(part_x, part_y, low, high_x, high_y, width, offset, weight_01, weight_10, weight_11):
    """`_weigh` for arbitrary points, with coordinates relative to the corner."""
    one, half = np.float32(8192), np.float32(0.5)
    for i in range(offset.size):
        sx = min(max(part_x[i] - half, low), high_x) - low
        sy = min(max(part_y[i] - half, low), high_y) - low
        column, row = np.int32(sx), np.int32(sy)
        fx, fy = sx - np.float32(column), (sy - np.float32(row)) * one
        both = np.int32(fx * fy)
        offset[i] = np.int32(np.int32(row * width) + column)
        weight_01[i] = np.int32(fx * (one - fy))
        weight_10[i] = np.int32(np.int32(fy) - both)
        weight_11[i] = both


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _row_rgb(target, packed, width, offset, weight_01, weight_10, weight_11, words):
    below = np.uint64(width)
    for i in range(offset.size):
        at = np.uint64(np.uint32(offset[i]))
        under = at + below
        origin = packed[at]
        # Differences of packed words borrow between lanes, but modulo 2**64, the sum is correct in all lanes.
        words[i] = (
            (origin << _SHIFT_0)
            + _LANE_HALF
            + (packed[at + _U1] - origin) * np.uint64(np.uint32(weight_01[i]))
            + (packed[under] - origin) * np.uint64(np.uint32(weight_10[i]))
            + (packed[under + _U1] - origin) * np.uint64(np.uint32(weight_11[i]))
        )
    for i in range(offset.size):
        word, at = words[i], np.uint64(i) * _U3
        target[at] = np.uint8(word >> _SHIFT_0)
        target[at + _U1] = np.uint8(word >> _SHIFT_1)
        target[at + _U2] = np.uint8(word >> _SHIFT_2)


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _pack_row(packed: np.ndarray, flat: np.ndarray) -> None:
    for i in range(packed.size):
        at = np.uint64(i) * _U3
        packed[i] = np.uint64(flat[at]) | np.uint64(flat[at + _U1]) << _LANE_1 | np.uint64(flat[at + _U2]) << _LANE_2


@njit(nogil=True, cache=True, error_model="numpy", no_cpython_wrapper=True)
def _trace_row(m, y, part_x, part_y):
    """Fill the source coordinates of one output row."""
    if m.shape[0] == 3:
        for i in range(part_x.size):
            px, py = i + 0.5, y + 0.5
            w = m[2, 0] * px + m[2, 1] * py + m[2, 2]
            part_x[i] = (m[0, 0] * px + m[0, 1] * py + m[0, 2]) / w if w != 0 else 0.0
            part_y[i] = (m[1, 0] * px + m[1, 1] * py + m[1, 2]) / w if w != 0 else 0.0
        return
    # In float32, in this order, and accumulated along parts of the row, as in DALI: the last bit may decide the nearest
    # pixel. Accumulated along a whole row of 2,000 pixels, coordinates would be wrong by a tenth of a pixel.
    half, middle = np.float32(0.5), np.float32(y + 0.5)
    step_x, step_y = np.float32(m[0, 0]), np.float32(m[1, 0])
    start_x = np.float32(np.float32(m[0, 2]) + step_x * half) + np.float32(m[0, 1]) * middle
    start_y = np.float32(np.float32(m[1, 2]) + step_y * half) + np.float32(m[1, 1]) * middle
    for begin in range(0, part_x.size, _PART):
        sx, sy = start_x, start_y
        for i in range(begin, min(begin + _PART, part_x.size)):
            part_x[i], part_y[i] = sx, sy
            sx += step_x
            sy += step_y
        start_x += step_x * np.float32(_PART)
        start_y += step_y * np.float32(_PART)


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _points_row(matrix, points_at, coordinate, n, y, part_x, part_y):
    """Fill the source coordinates of one output row from the points, or from the matrix if there are none."""
    if points_at.shape[0]:
        size = part_x.size
        row_x = array_at(points_at[n, 0] + y * size * coordinate.itemsize, (size,), coordinate)
        row_y = array_at(points_at[n, 1] + y * size * coordinate.itemsize, (size,), coordinate)
        outside = np.float32(-2)
        for j in range(size):
            part_x[j] = row_x[j] if row_x[j] == row_x[j] else outside
            part_y[j] = row_y[j] if row_y[j] == row_y[j] else outside
    else:
        _trace_row(matrix[n], y, part_x, part_y)


@njit(nogil=True, cache=True)
def _warp_rgb(out_at, out_shapes, out_like, x_at, x_shapes, x_like, matrix, points_at, coordinate, border, fill):
    # Clamping the coordinates repeats the border. For a fill value, the image is padded by one pixel with that value,
    # and the coordinates are clamped to the padding. So pixels need no tests.
    pad = 0 if border else 1
    word = np.uint64(fill[0]) | np.uint64(fill[1]) << _LANE_1 | np.uint64(fill[2]) << _LANE_2
    is_line = points_at.shape[0] == 0 and matrix.shape[1] == 2
    low = np.float32(-pad)
    for n in range(len(out_at)):
        rows, columns = out_shapes[n, 0], out_shapes[n, 1]
        out = array_at(out_at[n], (rows, columns * 3), out_like)
        x = array_at(x_at[n], (x_shapes[n, 0], x_shapes[n, 1] * 3), x_like)
        height, width = x_shapes[n, 0] + 2 * pad, x_shapes[n, 1] + 2 * pad
        # One additional row and pixel, because neighbors right of and below the last pixel are read, with weight 0.
        packed, words = new_array(((height + 1) * width + 1,), np.uint64), new_array((columns,), np.uint64)
        for at in range(packed.size):
            packed[at] = word
        part_x, part_y = new_array((columns,), np.float32), new_array((columns,), np.float32)
        offset, weight_01 = new_array((columns,), np.int32), new_array((columns,), np.int32)
        weight_10, weight_11 = new_array((columns,), np.int32), new_array((columns,), np.int32)
        high_x, high_y = np.float32(width - pad - 1), np.float32(height - pad - 1)
        for y in range(x.shape[0]):
            at = (y + pad) * width + pad
            _pack_row(packed[at : at + x_shapes[n, 1]], x[y])
        for y in range(rows):
            if is_line:
                m = matrix[n]
                start_x = m[0, 0] * 0.5 + m[0, 1] * (y + 0.5) + m[0, 2] - 0.5
                start_y = m[1, 0] * 0.5 + m[1, 1] * (y + 0.5) + m[1, 2] - 0.5
                _weigh(
                    np.float32(start_x), np.float32(start_y), np.float32(m[0, 0]), np.float32(m[1, 0]), low, high_x,
                    high_y, np.int32(width), offset, weight_01, weight_10, weight_11,
                )  # fmt: skip
            else:
                _points_row(matrix, points_at, coordinate, n, y, part_x, part_y)
                _weigh_points(
                    part_x, part_y, low, high_x, high_y, np.int32(width), offset, weight_01, weight_10, weight_11
                )
            _row_rgb(out[y], packed, width, offset, weight_01, weight_10, weight_11, words)


@njit(nogil=True, inline="always")
def _floor(value):
    """Return the floor of a float32 as int32. `math.floor` is a library call, which prevents vectorization."""
    whole = np.int32(value)
    return np.int32(whole - np.int32(np.float32(whole) > value))


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _split_row(shift, pad, high_x, high_y, width, offset, part_x, part_y):
    """Replace coordinates by the distances from the upper left source pixel, and fill its index."""
    low, frame = np.float32(-pad), np.int32(pad)
    for i in range(offset.size):
        at_x = min(max(part_x[i] - shift, low), high_x)
        at_y = min(max(part_y[i] - shift, low), high_y)
        column, row = _floor(at_x), _floor(at_y)
        part_x[i], part_y[i] = at_x - np.float32(column), at_y - np.float32(row)
        offset[i] = np.int64(np.int32(row + frame)) * width + np.int64(np.int32(column + frame))


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _gather_nearest(target, source, channels, offset):
    if channels == _U3:  # three times as fast as the loop
        for i in range(offset.size):
            at, put = np.uint64(offset[i]) * _U3, np.uint64(i) * _U3
            target[put] = source[at]
            target[put + _U1] = source[at + _U1]
            target[put + _U2] = source[at + _U2]
        return
    for i in range(offset.size):
        at, put = np.uint64(offset[i]) * channels, np.uint64(i) * channels
        for channel in range(channels):
            target[put + channel] = source[at + channel]


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _gather_linear(target, source, right, below, offset, part_x, part_y, to_byte):
    for i in range(offset.size):
        at, put = np.uint64(offset[i]) * right, np.uint64(i) * right
        fx, fy = part_x[i], part_y[i]
        for channel in range(right):
            here = at + channel
            top_left, bottom_left = np.float32(source[here]), np.float32(source[here + below])
            top = top_left + (np.float32(source[here + right]) - top_left) * fx
            bottom = bottom_left + (np.float32(source[here + below + right]) - bottom_left) * fx
            value = top + (bottom - top) * fy
            if to_byte:
                target[put + channel] = to_uint8(value)
            else:
                target[put + channel] = value


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _copy_row(target, source):
    for i in range(target.size):
        target[i] = source[i]


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _fill_pixels(source, first, last, fill):
    for pixel in range(first, last):
        for channel in range(fill.size):
            source[pixel * fill.size + channel] = fill[channel]


@njit(nogil=True, cache=True)
def _warp_2d(
    out_at, out_shapes, out_like, x_at, x_shapes, x_like, matrix, points_at, coordinate, nearest, border, fill, to_byte
):
    pad = 0 if border else 1
    shift = np.float32(0.0 if nearest else 0.5)
    for n in range(len(out_at)):
        rows, columns, channels = out_shapes[n, 0], out_shapes[n, 1], out_shapes[n, 2]
        length = x_shapes[n, 1] * channels
        out = array_at(out_at[n], (rows, columns * channels), out_like)
        x = array_at(x_at[n], (x_shapes[n, 0], length), x_like)
        height, width = x_shapes[n, 0] + 2 * pad, x_shapes[n, 1] + 2 * pad
        source = new_array((((height + 1) * width + 1) * channels,), x_like.dtype)
        _fill_pixels(source, 0, pad * width, fill)
        _fill_pixels(source, (height - pad) * width, (height + 1) * width + 1, fill)
        for row in range(pad, height - pad if pad else 0):
            _fill_pixels(source, row * width, row * width + 1, fill)
            _fill_pixels(source, (row + 1) * width - 1, (row + 1) * width, fill)
        offset = new_array((columns,), np.int64)
        part_x, part_y = new_array((columns,), np.float32), new_array((columns,), np.float32)
        high_x, high_y = np.float32(width - pad - 1), np.float32(height - pad - 1)
        right, below = np.uint64(channels), np.uint64(width * channels)
        for y in range(x.shape[0]):
            at = ((y + pad) * width + pad) * channels
            _copy_row(source[at : at + length], x[y])
        for y in range(rows):
            _points_row(matrix, points_at, coordinate, n, y, part_x, part_y)
            _split_row(shift, pad, high_x, high_y, width, offset, part_x, part_y)
            if nearest:
                _gather_nearest(out[y], source, right, offset)
            else:
                _gather_linear(out[y], source, right, below, offset, part_x, part_y, to_byte)


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _fetch_3d(x, z, y, i, channel, border, fill):
    if border:
        z, y, i = min(max(z, 0), x.shape[0] - 1), min(max(y, 0), x.shape[1] - 1), min(max(i, 0), x.shape[2] - 1)
    elif z < 0 or z >= x.shape[0] or y < 0 or y >= x.shape[1] or i < 0 or i >= x.shape[2]:
        return np.float32(fill)
    return np.float32(x[z, y, i, channel])


@njit(nogil=True, cache=True)
def _warp_3d(out, x, matrix, nearest, border, fill, to_byte):
    # Positions as in `_trace_row`.
    half, low, shift = np.float32(0.5), np.float32(-2), np.float32(0.0 if nearest else 0.5)
    high_x, high_y, high_z = np.float32(x.shape[3] + 1), np.float32(x.shape[2] + 1), np.float32(x.shape[1] + 1)
    for n in range(x.shape[0]):
        m, source = matrix[n].astype(np.float32), x[n]
        for z, y in np.ndindex(out.shape[1], out.shape[2]):
            middle_y, middle_z = np.float32(y + 0.5), np.float32(z + 0.5)
            at_x = m[0, 3] + m[0, 0] * half + m[0, 1] * middle_y + m[0, 2] * middle_z
            at_y = m[1, 3] + m[1, 0] * half + m[1, 1] * middle_y + m[1, 2] * middle_z
            at_z = m[2, 3] + m[2, 0] * half + m[2, 1] * middle_y + m[2, 2] * middle_z
            for i in range(out.shape[3]):
                sx, sy = min(max(at_x - shift, low), high_x), min(max(at_y - shift, low), high_y)
                sz = min(max(at_z - shift, low), high_z)
                at_x, at_y, at_z = at_x + m[0, 0], at_y + m[1, 0], at_z + m[2, 0]
                column, row, plane = _floor(sx), _floor(sy), _floor(sz)
                fx, fy, fz = np.float32(sx - column), np.float32(sy - row), np.float32(sz - plane)
                for channel in range(x.shape[4]):
                    value = _fetch_3d(source, plane, row, column, channel, border, fill) if nearest else np.float32(0)
                    if not nearest:
                        for corner in range(8):
                            dz, dy, dx = corner >> 2, corner >> 1 & 1, corner & 1
                            weight = (
                                (fx if dx else np.float32(1) - fx)
                                * (fy if dy else np.float32(1) - fy)
                                * (fz if dz else np.float32(1) - fz)
                            )
                            voxel = _fetch_3d(source, plane + dz, row + dy, column + dx, channel, border, fill)
                            value += weight * voxel
                    if to_byte:
                        out[n, z, y, i, channel] = to_uint8(value)
                    else:
                        out[n, z, y, i, channel] = value


def _prepared_fill(fill_value: float | Sequence[float] | None, dtype: np.dtype, channels: int) -> np.ndarray:
    """Return the fill values saturated to a dtype, one per channel: 300 becomes 255 for uint8."""
    held = np.empty(channels, dtype)
    saturate_cast(held, np.broadcast_to(np.asarray(0 if fill_value is None else fill_value, np.float32), (channels,)))
    return held


def values_outside(
    fill_value: float | Sequence[float] | None, out_dtype: np.dtype, dtype: np.dtype, channels: int, nearest: bool
) -> np.ndarray:
    """Return the fill values saturated to the result dtype, and for linear interpolation to the source dtype.

    Do not modify them: they are cached.
    """
    content = None if fill_value is None else np.asarray(fill_value, np.float32).tobytes()
    return _values_outside(content, out_dtype, dtype, channels, nearest)


@lru_cache(256)
def _values_outside(
    fill_value: bytes | None, out_dtype: np.dtype, dtype: np.dtype, channels: int, nearest: bool
) -> np.ndarray:
    if fill_value is None:
        return np.zeros(channels, out_dtype if nearest else dtype)
    value = _prepared_fill(np.frombuffer(fill_value, np.float32).tolist(), out_dtype, channels)
    return value if nearest else _prepared_fill(value.astype(np.float32).tolist(), dtype, channels)


def bounded_matrix(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix as float64 with elements limited to +-1e9 and NaN as 0, so that all indices are defined."""
    bounded = matrix.astype(np.float64, order="C")
    if not all_of(np.abs(bounded) <= 1e9, None):
        np.clip(bounded, -1e9, 1e9, out=bounded)
        bounded[bounded != bounded] = 0
    return bounded


def warp_2d(
    out: Samples, x: Samples, matrix: np.ndarray, *, nearest: bool, fill_value: float | Sequence[float] | None
) -> None:
    """Fill `out` with `x` warped by `matrix`, which maps output points to source points.

    Args:
        out: N samples [H', W', C], any dtype; values are rounded and saturated.
        x: N samples [H, W, C], any dtype. Fastest for uint8 to uint8 with C = 3.
        matrix: [N, 2, 3], or [N, 3, 3] for a projective map; the rows are for x, y, and the divisor.
        nearest: whether to use the pixel that contains the source point; otherwise interpolate linearly between four.
        fill_value: value outside the source, or one per channel; None repeats the border pixel.
    """
    _sampled(out, x, bounded_matrix(matrix), _NO_POINTS, nearest, fill_value)


def _not_empty(x: np.ndarray, fill_value: float | Sequence[float] | None) -> np.ndarray:
    """Return the source, or a pixel with the fill value if it is empty, because kernels read at clamped positions."""
    if x.size:
        return x
    pixel = _prepared_fill(fill_value, x.dtype, x.shape[-1]).astype(x.dtype)
    return np.tile(pixel, (x.shape[0], *(1 for _ in x.shape[1:-1]), 1))


def sample_2d(
    out: Samples,
    x: Samples,
    points: tuple[Samples, Samples],
    *,
    nearest: bool,
    fill_value: float | Sequence[float] | None,
) -> None:
    """Fill `out` with the values of `x` at given points.

    Args:
        out: N samples [H', W', C], any dtype.
        x: N samples [H, W, C], any dtype.
        points: N samples [H', W'] of float32 for x, and for y, of the source points, relative to the corner of the
            first pixel. NaN is a coordinate before the source.
        nearest: as in `warp_2d`.
        fill_value: as in `warp_2d`.
    """
    points_at = np.stack([axis.addresses for axis in points], axis=1)
    _sampled(out, x, _NO_MATRIX, points_at, nearest, fill_value)


def _sampled(
    out: Samples,
    x: Samples,
    matrix: np.ndarray,
    points_at: np.ndarray,
    nearest: bool,
    fill_value: float | Sequence[float] | None,
) -> None:
    """Compute `warp_2d` from matrices, or `sample_2d` from addresses of points [N, 2]."""
    if not len(x):
        return
    shapes = x.shapes if x.dense is None else x.shapes[:1]
    # If samples are empty, or numbers of channels differ, samples are computed one by one.
    if all_of(shapes, None) and all_of(shapes[:, 2] == shapes[0, 2], None):
        _sampled_usual(out, x, matrix, points_at, nearest, fill_value)
        return
    for n, (target, source) in enumerate(zip(out.arrays(), x.arrays(), strict=True)):
        whole = Samples.of_dense(_not_empty(source[None], fill_value))
        own = slice(n, n + 1)
        _sampled_usual(Samples.of_dense(target[None]), whole, matrix[own], points_at[own], nearest, fill_value)


def _sampled_usual(
    out: Samples,
    x: Samples,
    matrix: np.ndarray,
    points_at: np.ndarray,
    nearest: bool,
    fill_value: float | Sequence[float] | None,
) -> None:
    channels = int(x.shapes[0, 2])
    border, value = fill_value is None, values_outside(fill_value, out.dtype, x.dtype, channels, nearest)
    if x.dtype == np.uint8 and out.dtype == np.uint8:
        if channels == 3 and not nearest and (x.extents(0) * x.extents(1) < 2**30).all():
            _warp_rgb(*out.compiled, *x.compiled, matrix, points_at, _COORDINATE, border, value)
            return
        _warp_2d(*out.compiled, *x.compiled, matrix, points_at, _COORDINATE, nearest, border, value, True)
        return
    result = out if out.dtype == np.float32 else Samples.empty(out.shapes, np.dtype(np.float32))
    source = x if x.dtype == np.float32 else x.converted(np.dtype(np.float32))
    fill = value.astype(np.float32)
    _warp_2d(*result.compiled, *source.compiled, matrix, points_at, _COORDINATE, nearest, border, fill, False)
    if result is not out:
        saturate_cast_samples(out, result)


def warp_3d(out: Samples, x: Samples, matrix: np.ndarray, *, nearest: bool, fill_value: float | None) -> None:
    """`warp_2d` for volumes [D, H, W, C], sample by sample; `matrix` is [N, 3, 4], its rows are for x, y, z."""
    matrix = bounded_matrix(matrix)
    for n, (target, source) in enumerate(zip(out.arrays(), x.arrays(), strict=True)):
        _warp_volume(target[None], _not_empty(source[None], fill_value), matrix[n : n + 1], nearest, fill_value)


def _warp_volume(out: np.ndarray, x: np.ndarray, matrix: np.ndarray, nearest: bool, fill_value: float | None) -> None:
    border, value = fill_value is None, float(values_outside(fill_value, out.dtype, x.dtype, x.shape[-1], nearest)[0])
    if x.dtype == np.uint8 and out.dtype == np.uint8:
        _warp_3d(out, x, matrix, nearest, border, value, True)
        return
    result = out if out.dtype == np.float32 else np.empty(out.shape, np.float32)
    _warp_3d(result, x.astype(np.float32, copy=False), matrix, nearest, border, value, False)
    if result is not out:
        saturate_cast(out, result)
