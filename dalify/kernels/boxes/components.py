"""Connected components of a label mask: adjacent pixels with the same label, and their bounding boxes.

Rows are split into runs of one label, runs that touch runs of the same label in an adjacent row are joined (union-find:
Rosenfeld, Pfaltz, 1966), and the box of each object grows with its runs. Pixels are adjacent if they share a face: 2
neighbors per axis, in any number of dimensions.
"""

from __future__ import annotations

import numpy as np

from dalify.base.compiling import njit
from dalify.kernels.arrays.frozen import read_only

__all__ = ["object_boxes", "present_labels"]

_MAX_TABLE_SIZE = 1 << 16


def present_labels(mask: np.ndarray) -> np.ndarray:
    """Return the sorted labels of a mask, int64.

    Args:
        mask: integers of at most 32 bits, any shape, not empty.
    """
    flat = read_only(mask).reshape(-1)
    low, high = int(flat.min()), int(flat.max())
    if high - low >= _MAX_TABLE_SIZE:
        return np.unique(flat).astype(np.int64)
    is_present = np.zeros(high - low + 1, np.bool_)
    _mark(flat, low, is_present)
    return np.flatnonzero(is_present) + low


@njit(nogil=True, cache=True)
def _mark(flat, low, is_present):
    for i in range(flat.size):
        is_present[np.int64(flat[i]) - low] = True


def object_boxes(mask: np.ndarray, label: int, *, is_excluded: bool = False) -> np.ndarray:
    """Return the bounding boxes of the objects of one label, or of all others.

    Args:
        mask: integers of at most 32 bits, at least one axis, not empty.
        label: label of the objects.
        is_excluded: use the objects of all other labels instead; objects of different labels are never joined.

    Returns:
        int32 [objects, 2, axes]: start and end of each, in the order of their first pixels.
    """
    length = mask.shape[-1]
    rows = read_only(mask).reshape(-1, length)
    outer = np.array(mask.shape[:-1], np.int64)
    # A row has at most one run per pixel; runs of a single label are separated by a pixel.
    capacity = rows.size if is_excluded else len(rows) * ((length + 1) // 2)
    parent = np.empty(capacity, np.int32)
    spans = np.empty((capacity, 2), np.int32)
    first_run = np.empty(len(rows) + 1, np.int64)
    runs = _join_runs(rows, outer, label, is_excluded, parent, spans, first_run)
    return _boxes_of(outer, parent[:runs], spans[:runs], first_run)


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
    boxes[:, 0] = np.iinfo(np.int32).max
    boxes[:, 1] = 0
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
