"""Filters images with symmetric kernels along rows and columns, in one compiled call per chunk.

Rows are filtered horizontally into a ring buffer of float32, which holds the rows under the vertical kernel. Wide
images are filtered in strips, so that the buffer stays in the CPU cache. Borders are reflected without repeating the
edge pixel (``dcb|abcd|cba``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dalify.base.array_at import array_at, new_array
from dalify.base.compiling import njit
from dalify.base.small_arrays import columns_at, rows_at
from dalify.data.samples import Samples
from dalify.kernels.arrays.simd import store_row, symmetric_sums

_LANES = 32  # elements that `symmetric_sums` and `store_row` fill
_BUFFER_ELEMENTS = 1 << 16  # of the ring buffer: 256 KB
_NARROWEST = 512  # elements of a strip, if the kernel is too large for the buffer
_FLOAT = np.empty(0, np.float32)


@dataclass(frozen=True, slots=True)
class SymmetricKernels:
    """Symmetric kernels of odd size, one for each frame and filtered axis. A kernel of one weight is 1.

    Attributes:
        weights: the weights of all kernels, float32 [total].
        centers: index of the middle weight of each kernel, int64 [N, axes].
        radii: number of weights on each side of the middle, int64 [N, axes].
    """

    weights: np.ndarray
    centers: np.ndarray
    radii: np.ndarray

    @staticmethod
    def of_arrays(kernels: Sequence[Sequence[np.ndarray]]) -> SymmetricKernels:
        """Return the kernels of N lists, one array per axis."""
        places: dict[int, int] = {}  # by the identity of an array: many frames have the same kernel
        arrays: list[np.ndarray] = []
        end = 0
        for array in (array for each in kernels for array in each):
            if id(array) not in places:
                places[id(array)] = end + array.size // 2
                arrays.append(array)
                end += array.size
        centers = np.array([[places[id(array)] for array in each] for each in kernels], np.int64)
        radii = np.array([[array.size // 2 for array in each] for each in kernels], np.int64)
        return SymmetricKernels(np.concatenate(arrays, dtype=np.float32), centers, radii)

    @property
    def arrays(self) -> list[list[np.ndarray]]:
        """N lists of one array per axis."""
        begins, ends = self.centers - self.radii, self.centers + self.radii + 1
        return [
            [self.weights[begin:end] for begin, end in zip(*of_frame, strict=True)]
            for of_frame in zip(begins.tolist(), ends.tolist(), strict=True)
        ]

    @property
    def axes(self) -> int:
        """Number of filtered axes."""
        return self.radii.shape[1]

    def take(self, frames: np.ndarray) -> SymmetricKernels:
        """Return the kernels of some frames."""
        return SymmetricKernels(self.weights, rows_at(self.centers, frames), rows_at(self.radii, frames))

    def of_axes(self, *axes: int) -> SymmetricKernels:
        """Return the kernels of some axes."""
        return SymmetricKernels(self.weights, columns_at(self.centers, axes), columns_at(self.radii, axes))


def filter_images(out: Samples, x: Samples, shapes: np.ndarray, kernels: SymmetricKernels) -> None:
    """Filter images; sums of uint8 results are rounded, halves to even.

    Args:
        out: N images, uint8 or float32, output.
        x: N images, uint8 or float32.
        shapes: rows, columns and channels of each image, int64 [N, 3].
        kernels: kernels of one axis (the rows are filtered vertically only) or of two.
    """
    centers, radii = kernels.centers, kernels.radii
    _filter_images(out.addresses, out.like, x.addresses, x.like, shapes, kernels.weights, centers, radii, _FLOAT)


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _mirrored(place, size):
    """Return the index of a position of an axis, which may be outside."""
    if size == 1:
        return 0
    period = 2 * (size - 1)
    place %= period
    return min(place, period - place)


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _fill_tables(rows, targets, sources, line, radius, channels, first, last, width):
    """Fill tables that are the same for all rows of a strip; return the number of elements outside the image.

    Args:
        rows: addresses of the elements under the kernel for the first result: the middle, and pairs around it, output.
        targets: indices of the elements outside in the line, output.
        sources: indices of the elements in the row of the image with their values, output.
        line: address of the padded line.
        radius: of the kernel.
        channels: of the image.
        first: first pixel of the strip.
        last: the pixel after the strip.
        width: of the image.
    """
    middle = line + np.uintp(4 * radius * channels)
    rows[0] = middle
    for i in range(radius):
        distance = np.uintp(4 * (i + 1) * channels)
        rows[1 + 2 * i], rows[2 + 2 * i] = middle - distance, middle + distance
    count = 0
    for place in range(first - radius, last + radius):
        if place < 0 or place >= width:
            source = _mirrored(place, width)
            for c in range(channels):
                targets[count] = (place - first + radius) * channels + c
                sources[count] = source * channels + c
                count += 1
    return count


@njit(nogil=True, cache=True)
def _filter_images(out_at, out_like, x_at, x_like, shapes, weights, centers, radii, floats):
    """Filter all images of a chunk; `floats` is an empty array of float32."""
    weights_at = np.uintp(weights.ctypes.data)
    tail = new_array((_LANES,), out_like.dtype)
    tail_at = np.uintp(tail.ctypes.data)
    for n in range(len(x_at)):
        height, width, channels = shapes[n]
        size = width * channels
        x = array_at(x_at[n], (height, size), x_like)
        out = array_at(out_at[n], (height, size), out_like)
        above, vertical = radii[n, 0], weights_at + np.uintp(4 * centers[n, 0])
        left, horizontal = 0, vertical
        if radii.shape[1] == 2:
            left, horizontal = radii[n, 1], weights_at + np.uintp(4 * centers[n, 1])
        taps = 2 * above + 1
        pixels = min(width, max(_BUFFER_ELEMENTS // taps, _NARROWEST) // channels + 1)  # of a strip
        step = (pixels * channels + 2 * _LANES - 1) // _LANES * _LANES
        # The elements after those of a strip are computed as well, and should not be slow denormal numbers.
        line, ring = np.zeros(step + 2 * left * channels, np.float32), np.zeros(taps * step, np.float32)
        ring_at, step_bytes = np.uintp(ring.ctypes.data), np.uintp(4 * step)
        columns, rows = new_array((2 * left + 1,), np.uint64), new_array((taps,), np.uint64)
        columns_at, rows_at = np.uintp(columns.ctypes.data), np.uintp(rows.ctypes.data)
        targets, sources = new_array((2 * left * channels,), np.int64), new_array((2 * left * channels,), np.int64)
        for first in range(0, width, pixels):
            last = min(first + pixels, width)
            count = (last - first) * channels
            outside = _fill_tables(
                columns, targets, sources, np.uintp(line.ctypes.data), left, channels, first, last, width
            )  # fmt: skip
            begin, end = max(first - left, 0) * channels, min(last + left, width) * channels
            place = begin - (first - left) * channels
            ready = 0
            for y in range(height):
                while ready < y + taps:
                    row = x[_mirrored(ready - above, height)]
                    target = ring_at + np.uintp(ready % taps) * step_bytes
                    inside = line[place : place + end - begin]
                    source = row[begin:end]
                    for k in range(source.size):
                        inside[k] = np.float32(source[k])
                    for k in range(outside):
                        line[targets[k]] = np.float32(row[sources[k]])
                    for k in range(0, count, _LANES):
                        at = np.uintp(4 * k)
                        if left:
                            symmetric_sums(columns_at, horizontal, np.uintp(left), at, target + at, floats)
                        else:
                            store_row(columns_at, at, target + at, floats)
                    ready += 1
                rows[0] = ring_at + np.uintp((y + above) % taps) * step_bytes
                for i in range(above):
                    rows[1 + 2 * i] = ring_at + np.uintp((y + above - 1 - i) % taps) * step_bytes
                    rows[2 + 2 * i] = ring_at + np.uintp((y + above + 1 + i) % taps) * step_bytes
                target = np.uintp(out_at[n] + (y * size + first * channels) * out.itemsize)
                for k in range(0, count, _LANES):
                    is_whole = k + _LANES <= count
                    to = target + np.uintp(k * out.itemsize) if is_whole else tail_at
                    if above:
                        symmetric_sums(rows_at, vertical, np.uintp(above), np.uintp(4 * k), to, out_like)
                    else:
                        store_row(rows_at, np.uintp(4 * k), to, out_like)
                    if not is_whole:
                        for i in range(count - k):
                            out[y, first * channels + k + i] = tail[i]
        ring[0] = 0.0  # numba frees an array after its last use, and does not see those by address
