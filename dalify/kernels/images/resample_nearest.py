"""Resamples images and volumes by copying the nearest pixels, on the CPU."""

from __future__ import annotations

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.data.dtypes import DALIInterpType
from dalify.data.samples import Samples
from dalify.kernels.images.resample_filters import axis_taps, place_in_whole

_NEAREST = int(DALIInterpType.INTERP_NN)
_BYTE = np.empty(0, np.uint8)


def gather_nearest(out: Samples, x: Samples, start: np.ndarray, end: np.ndarray, parts: np.ndarray) -> None:
    """Copy nearest pixels of any dtype; see `Windows` of `dalify.kernels.images.resample` for the last arguments.

    Args:
        out: N samples [h, w, C] or [d, h, w, C], output.
        x: N contiguous samples of the same dtype and number of dimensions.
        start: float32 [N, 2] or [N, 3].
        end: float32 [N, 2] or [N, 3].
        parts: int64 [N, 4], or no rows.
    """
    if x.ndim == 3:  # images are volumes of one slice
        out, x = out.with_axis(0), x.with_axis(0)
        start, end = (np.insert(corner, 0, edge, axis=1) for corner, edge in ((start, 0), (end, 1)))
    _nearest(out.addresses, out.shapes, x.addresses, x.shapes, x.dtype.itemsize, start, end, parts, _BYTE)


@njit(nogil=True, cache=True)
def _nearest(out_at, out_shapes, x_at, x_shapes, itemsize, start, end, parts, byte):
    """Copy the nearest pixels of volumes [D, H, W, C] with elements of `itemsize` bytes."""
    for n in range(len(out_at)):
        depth, height, width, channels = out_shapes[n, 0], out_shapes[n, 1], out_shapes[n, 2], out_shapes[n, 3]
        size = channels * itemsize
        out = array_at(out_at[n], (depth, height, width * size), byte)
        x = array_at(x_at[n], (x_shapes[n, 0], x_shapes[n, 1], x_shapes[n, 2] * size), byte)
        slices, rows, columns = np.empty(depth, np.int64), np.empty(height, np.int64), np.empty(width, np.int64)
        for axis in range(3):
            first = slices if axis == 0 else rows if axis == 1 else columns
            weights = np.empty((first.size, 1), np.float32)
            whole, begin = first.size, np.int64(0)
            if axis:
                whole, begin = place_in_whole(parts, n, axis - 1, first.size)
            axis_taps(
                x_shapes[n, axis], whole, begin, start[n, axis], end[n, axis], _NEAREST, np.float32(0), axis < 2, first,
                weights, True,
            )  # fmt: skip
        for i in range(depth):
            _copy_pixels(out[i], x[slices[i]], size, rows, columns)


@njit(nogil=True, cache=True)
def _copy_pixels(out, x, size, rows, columns):
    """Copy pixels of `size` bytes."""
    pixel = np.uintp(size)
    for i in range(rows.size):
        source, target = x[rows[i]], out[i]
        for j in range(columns.size):
            a, b = np.uintp(j) * pixel, np.uintp(columns[j]) * pixel
            if size == 3:  # no loop: RGB is the common case
                target[a] = source[b]
                target[a + np.uintp(1)] = source[b + np.uintp(1)]
                target[a + np.uintp(2)] = source[b + np.uintp(2)]
            else:
                for k in range(size):
                    target[a + np.uintp(k)] = source[b + np.uintp(k)]
