"""Maps bytes of pixels to planes through a look-up table.

Scaling, dtype conversion and normalization are one table of 256 entries per channel, so the result is bit-exact with
the computation that filled the table.
"""

from __future__ import annotations

from dalify.base.compiling import njit

__all__ = ["planes_of_image", "planes_of_windows"]


@njit(nogil=True, cache=True)
def planes_of_image(source, table, target):
    """Look up the bytes of one image.

    Args:
        source: uint8 ``[height, width, channels]``, any strides.
        table: ``[channels, 256]``.
        target: ``[channels, height, width]``, the dtype of the table.
    """
    height, width, channels = source.shape
    if channels == 3:
        for y in range(height):
            for x in range(width):
                target[0, y, x] = table[0, source[y, x, 0]]
                target[1, y, x] = table[1, source[y, x, 1]]
                target[2, y, x] = table[2, source[y, x, 2]]
    else:
        for y in range(height):
            for x in range(width):
                for channel in range(channels):
                    target[channel, y, x] = table[channel, source[y, x, channel]]


@njit(nogil=True, cache=True)
def planes_of_windows(images, indices, corners, flips, fill, table, target):
    """Look up windows of many images of one size; pixels outside an image are filled.

    Args:
        images: uint8 ``[images, height, width, channels]``.
        indices: int64 ``[samples]``, image index; must be valid.
        corners: int64 ``[samples, 2]``: row and column of the window's corner, possibly outside the image.
        flips: bool ``[samples, 2]``: vertical, horizontal.
        fill: uint8 ``[channels]``.
        table: ``[channels, 256]``.
        target: ``[samples, channels, window height, window width]``, the dtype of the table.
    """
    height, width = images.shape[1], images.shape[2]
    samples, channels, rows, columns = target.shape
    for sample in range(samples):
        image = images[indices[sample]]
        top, left = corners[sample]
        # Columns of the window inside the image, so that the inner loops need no tests.
        begin, end = min(max(0, -left), columns), max(0, min(columns, width - left))
        for channel in range(channels):
            filler = table[channel, fill[channel]]
            for y in range(rows):
                to = rows - 1 - y if flips[sample, 0] else y
                row = target[sample, channel, to]
                if top + y < 0 or top + y >= height or end <= begin:
                    row[:] = filler
                elif flips[sample, 1]:
                    last = columns - 1
                    for x in range(begin):
                        row[last - x] = filler
                    for x in range(begin, end):
                        row[last - x] = table[channel, image[top + y, left + x, channel]]
                    for x in range(end, columns):
                        row[last - x] = filler
                else:
                    for x in range(begin):
                        row[x] = filler
                    for x in range(begin, end):
                        row[x] = table[channel, image[top + y, left + x, channel]]
                    for x in range(end, columns):
                        row[x] = filler
