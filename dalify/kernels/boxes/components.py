"""Connected components of a label mask: adjacent pixels with the same label, and their bounding boxes.

Rows are split into runs of one label, and adjacent runs are joined by union-find (Rosenfeld and Pfaltz, 1966). Pixels
are adjacent if they share a face: 2 neighbors per axis, in any number of dimensions.
"""

from __future__ import annotations

import numpy as np

from dalify.base.array_at import array_at, flat_at
from dalify.base.compiling import njit
from dalify.data.samples import Samples

_MAX_TABLE_SIZE = 1 << 16
_LARGEST = 2**31 - 1


def labels_of_samples(x: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Return the ascending labels of all masks, concatenated, int64 [total], and their number per mask, int64 [N].

    Args:
        x: masks: integers of at most 32 bits or booleans, not empty.
    """
    counts = np.empty(len(x), np.int64)
    labels = _labels_of_samples(x.addresses, x.shapes, _like(x), counts)
    if (counts >= 0).all():
        return labels, counts
    parts = [np.unique(mask).astype(np.int64) for mask in x.arrays()]
    return np.concatenate(parts), np.array([len(part) for part in parts], np.int64)


def objects_of_samples(x: Samples, labels: np.ndarray, *, is_excluded: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounding boxes of the objects of one label of each mask, or of all other labels.

    Args:
        x: masks: integers of at most 32 bits or booleans, at least one axis, not empty.
        labels: label of the objects of each mask, int64 [N].
        is_excluded: whether to use the objects of all other labels; objects of different labels are never joined.

    Returns:
        int32 [objects, 2, axes]: start and end of each, in the order of their first pixels; and the number of objects
        of each mask, int64 [N].
    """
    counts = np.empty(len(x), np.int64)
    return _objects_of_samples(x.addresses, x.shapes, _like(x), labels, is_excluded, counts), counts


def _like(x: Samples) -> np.ndarray:
    return x.like.view(np.uint8) if x.dtype == np.bool_ else x.like


@njit(nogil=True, cache=True)
def _labels_of_samples(x_at, x_shapes, like, counts):
    """Return the labels of all masks and fill their counts; -1 for masks with labels too far apart for the table."""
    labels, total = np.empty(4 * len(x_at), np.int64), 0
    is_present = np.zeros(_MAX_TABLE_SIZE, np.bool_)
    for n in range(len(x_at)):
        flat = flat_at(x_at[n], x_shapes[n], like)
        first, size = np.int64(-128), np.int64(384)  # of all types of one byte
        if like.itemsize > 1:
            low, high = flat[0], flat[0]
            for value in flat:
                low, high = min(low, value), max(high, value)
            first = np.int64(low)
            size = np.int64(high) - first + 1
        counts[n] = -1
        if size > _MAX_TABLE_SIZE:
            continue
        for value in flat:
            is_present[np.int64(value) - first] = True
        counts[n] = 0
        for i in range(size):
            if is_present[i]:
                if total == labels.size:
                    more = np.empty(2 * total, np.int64)
                    for k in range(total):
                        more[k] = labels[k]
                    labels = more
                labels[total] = first + i
                total += 1
                counts[n] += 1
                is_present[i] = False
    return labels[:total]


@njit(nogil=True, cache=True)
def _objects_of_samples(x_at, x_shapes, like, labels, is_excluded, counts):
    axes, total = x_shapes.shape[1], 0
    boxes = np.empty((len(x_at), 2, axes), np.int32)
    for n in range(len(x_at)):
        outer, length = x_shapes[n, : axes - 1], x_shapes[n, axes - 1]
        height = np.int64(1)
        for extent in outer:
            height *= extent
        rows = array_at(x_at[n], (height, length), like)
        # A row has at most one run per pixel, or per two pixels for runs of a single label.
        capacity = rows.size if is_excluded else height * ((length + 1) // 2)
        parent, spans = np.empty(capacity, np.int32), np.empty((capacity, 2), np.int32)
        first_run = np.empty(height + 1, np.int64)
        runs = _join_runs(rows, outer, labels[n], is_excluded, parent, spans, first_run)
        found = _boxes_of(outer, parent[:runs], spans[:runs], first_run)
        end = total + len(found)
        if end > len(boxes):
            more = np.empty((2 * end, 2, axes), np.int32)
            _copy_boxes(more, 0, boxes, total)
            boxes = more
        _copy_boxes(boxes, total, found, len(found))
        counts[n] = len(found)
        total = end
    return boxes[:total]


@njit(nogil=True, cache=True)
def _copy_boxes(out, first, boxes, count):
    for i in range(count):
        for axis in range(boxes.shape[2]):
            out[first + i, 0, axis] = boxes[i, 0, axis]
            out[first + i, 1, axis] = boxes[i, 1, axis]


@njit(nogil=True, cache=True)
def _root(parent, run):
    while parent[run] != run:
        parent[run] = parent[parent[run]]
        run = parent[run]
    return run


@njit(nogil=True, cache=True)
def _join_runs(rows, outer, label, is_excluded, parent, spans, first_run):
    """Split rows into runs and join adjacent runs; return their number. Parents precede their children."""
    length = rows.shape[1]
    runs = 0
    for r in range(rows.shape[0]):
        first_run[r] = runs
        row = rows[r]
        i = 0
        while i < length:
            value = np.int64(row[i])
            begin = i
            i += 1
            if (value == label) == is_excluded:
                continue
            while i < length and np.int64(row[i]) == value:
                i += 1
            parent[runs] = runs
            spans[runs, 0] = begin
            spans[runs, 1] = i
            runs += 1
        rest, stride = r, 1
        for axis in range(outer.size - 1, -1, -1):
            if rest % outer[axis] > 0:
                other_row = rows[r - stride]
                other, other_end = first_run[r - stride], first_run[r - stride + 1]
                mine = first_run[r]
                while mine < runs and other < other_end:
                    is_touching = spans[mine, 0] < spans[other, 1] and spans[other, 0] < spans[mine, 1]
                    if is_touching and (not is_excluded or row[spans[mine, 0]] == other_row[spans[other, 0]]):
                        a, b = _root(parent, mine), _root(parent, other)
                        parent[max(a, b)] = min(a, b)
                    if spans[mine, 1] < spans[other, 1]:
                        mine += 1
                    else:
                        other += 1
            rest //= outer[axis]
            stride *= outer[axis]
    first_run[rows.shape[0]] = runs
    return runs


@njit(nogil=True, cache=True)
def _boxes_of(outer, parent, spans, first_run):
    """Return the boxes [objects, 2, axes] of joined runs."""
    axes = outer.size + 1
    number = np.empty(parent.size, np.int32)
    objects = 0
    for run in range(parent.size):
        if parent[run] == run:
            number[run] = objects
            objects += 1
    boxes = np.empty((objects, 2, axes), np.int32)
    for i in range(objects):
        for axis in range(axes):
            boxes[i, 0, axis], boxes[i, 1, axis] = _LARGEST, 0
    for r in range(first_run.size - 1):
        for run in range(first_run[r], first_run[r + 1]):
            box = boxes[number[_root(parent, run)]]
            rest = r
            for axis in range(outer.size - 1, -1, -1):
                at = rest % outer[axis]
                rest //= outer[axis]
                box[0, axis] = min(box[0, axis], at)
                box[1, axis] = max(box[1, axis], at + 1)
            box[0, axes - 1] = min(box[0, axes - 1], spans[run, 0])
            box[1, axes - 1] = max(box[1, axes - 1], spans[run, 1])
    return boxes
