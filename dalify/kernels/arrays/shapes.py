"""Properties of the shapes of the samples of a chunk, computed in one compiled loop."""

from __future__ import annotations

from typing import Any

from dalify.base.compiling import njit


@njit(cache=True)
def describe_shapes(shapes: Any, item_bytes: int, alignment_bytes: int, offsets: Any, found: Any) -> None:
    """Compute the offsets of samples in a block, and the attributes of a table.

    Args:
        shapes: int64 ``[N, ndim]``.
        item_bytes: size of one element.
        alignment_bytes: the offsets are multiples of this number.
        offsets: result, int64 ``[N]``.
        found: result: each extent, -1 if it differs; the index of the largest sample and the number of its elements, at
            most 2**62; whether no sample is empty; the size of the block in bytes.
    """
    count, ndim = shapes.shape
    for axis in range(ndim):
        found[axis] = shapes[0, axis]
    largest, largest_size, is_full, end = 0, -1.0, 1, 0
    for n in range(count):
        size, size_bytes = 1.0, item_bytes  # the product of extents may exceed 64 bits
        for axis in range(ndim):
            extent = shapes[n, axis]
            size *= extent
            size_bytes *= extent
            if extent != shapes[0, axis]:
                found[axis] = -1
        if size == 0:
            is_full = 0
        if size > largest_size:
            largest, largest_size = n, size
        offsets[n] = end
        end += size_bytes + -size_bytes % alignment_bytes
    found[ndim], found[ndim + 1] = largest, min(largest_size, 2.0**62)
    found[ndim + 2], found[ndim + 3] = is_full, end


@njit(cache=True)
def find_spans(offsets: Any, shapes: Any, item_bytes: int, starts: Any, spans: Any) -> tuple[int, int, int]:
    """Compute the positions of samples in a row of elements that includes the gaps between them.

    Args:
        offsets: offsets of the samples in bytes, int64 ``[N]``, N at least 1.
        shapes: int64 ``[N, ndim]``.
        item_bytes: size of one element.
        starts: output: index of the first element of each sample in the row, int64 ``[N]``.
        spans: output: elements from the start of a sample to the next one, int64 ``[N]``; the last one has no gap.

    Returns:
        number of elements of the row, -1 if samples overlap or are not in order; number of elements of all samples;
        number of elements of the largest sample, -1 if one is empty.
    """
    total, largest, is_full, count = 0, 0, True, shapes.shape[0]
    for n in range(count):
        size = 1
        for axis in range(shapes.shape[1]):
            size *= shapes[n, axis]
        starts[n], spans[n] = (offsets[n] - offsets[0]) // item_bytes, size
        total, largest, is_full = total + size, max(largest, size), is_full and size > 0
    for n in range(count - 1):
        step = starts[n + 1] - starts[n]
        if step < spans[n]:
            return -1, total, -1
        spans[n] = step
    return starts[count - 1] + spans[count - 1], total, largest if is_full else -1


@njit(cache=True)
def copy_extents(shapes: Any, given: Any, columns: Any, extents: Any) -> None:
    """Compute some extents of samples from extents of other samples.

    Args:
        shapes: output, int64 ``[N, ndim]``.
        given: shapes of the other samples, int64 ``[N, axes]``.
        columns: the axis in `given` of each extent, int64 ``[ndim]``; -1: it is not copied.
        extents: each extent that is not copied, int64 ``[ndim]``; -1: the extent is not changed.
    """
    for n in range(shapes.shape[0]):
        for axis in range(shapes.shape[1]):
            if columns[axis] >= 0:
                shapes[n, axis] = given[n, columns[axis]]
            elif extents[axis] >= 0:
                shapes[n, axis] = extents[axis]
