"""Maps bytes of pixels to planes through a look-up table.

Scaling, dtype conversion and normalization are one table of 256 entries per channel, so the result equals that of the
computation that filled the table. Indices are unsigned, so they need no test for negative values.
"""

from __future__ import annotations

from numba import uintp

from dalify.base.compiling import njit


@njit(nogil=True, cache=True)
def planes_of_image(source, table, target):
    """Look up the bytes of one image.

    Args:
        source: uint8 ``[height, width, channels]``, any strides.
        table: ``[channels, 256]``.
        target: ``[channels, height, width]``, the dtype of the table.
    """
    height, width, channels = source.shape
    for y in range(height):
        pixels = source[y]
        for channel in range(channels):
            values, row = table[channel], target[channel, y]
            for x in range(width):
                row[uintp(x)] = values[pixels[uintp(x), uintp(channel)]]


@njit(nogil=True, cache=True)
def planes_of_windows(images, indices, corners, flips, fill, table, target):
    """Look up windows of many images of one size; pixels outside an image are filled.

    Args:
        images: uint8 ``[images, height, width, channels]``.
        indices: int64 ``[samples]``, image index; must be valid.
        corners: int64 ``[samples, 2]``, row and column of the top left corner, possibly outside the image.
        flips: bool ``[samples, 2]``, vertical and horizontal.
        fill: uint8 ``[channels]``.
        table: ``[channels, 256]``.
        target: ``[samples, channels, window height, window width]``, the dtype of the table.
    """
    height, width = images.shape[1], images.shape[2]
    samples, channels, rows, columns = target.shape
    for sample in range(samples):
        image = images[uintp(indices[sample])]
        top, left = corners[sample]
        # Columns of the window inside the image, so that the inner loop needs no tests.
        begin, end = min(max(0, -left), columns), max(0, min(columns, width - left))
        first, step = (columns - 1, -1) if flips[sample, 1] else (0, 1)
        for channel in range(channels):
            values = table[channel]
            for y in range(rows):
                row = target[sample, channel, rows - 1 - y if flips[sample, 0] else y]
                is_inside = 0 <= top + y < height
                if begin > 0 or end < columns or not is_inside:
                    row[:] = values[fill[channel]]
                if is_inside:
                    pixels = image[uintp(top + y)]
                    for x in range(begin, end):
                        row[uintp(first + step * x)] = values[pixels[uintp(left + x), uintp(channel)]]
