"""Matches anchors to boxes for single-shot detectors, on the CPU and the accelerator.

There are many more anchors than boxes, so the SIMD loops run over anchors; each coordinate is a contiguous row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.array_at import new_array
from dalify.base.compiling import njit
from dalify.base.optional import torch
from dalify.data.rows import Rows
from dalify.kernels.arrays.frozen import read_only
from dalify.kernels.arrays.upload_torch import uploaded

_BLOCK = 1024
_LANES = 16


def anchor_table(anchors: np.ndarray) -> np.ndarray:
    """Precompute a table of anchors, float32 [9, A]: start, end, area, center, extents.

    Args:
        anchors: float32 [A, 4], left, top, right, bottom.
    """
    start, end = anchors[:, :2].T, anchors[:, 2:].T
    area = (end - start).prod(axis=0, keepdims=True)
    table = np.concatenate([start, end, area, (start + end) * np.float32(0.5), end - start])
    return np.ascontiguousarray(table, np.float32)  # the order of the transposed anchors would prevent SIMD


@njit(nogil=True, cache=True, error_model="numpy", no_cpython_wrapper=True)
def _overlaps(result, best, best_box, number, corners, x0, y0, x1, y1, areas):
    """Fill the intersection over union of one box with some anchors; 0 if both have area 0.

    Update the best box of each anchor; this box wins ties.
    """
    zero = np.float32(0)
    left, top, right, bottom = corners
    area = (right - left) * (bottom - top)
    for a in range(result.size):
        width = max(min(right, x1[a]) - max(left, x0[a]), zero)
        height = max(min(bottom, y1[a]) - max(top, y0[a]), zero)
        common = width * height
        union = area + areas[a] - common
        overlap = common / union if union != zero else zero
        is_better = overlap >= best[a]
        result[a] = overlap
        best[a] = overlap if is_better else best[a]
        best_box[a] = number if is_better else best_box[a]


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _highest(values, minimum, lanes):
    """Return the maximum of `minimum` and `values`; values that are NaN are ignored."""
    for k in range(_LANES):
        lanes[k] = minimum
    whole = values.size - values.size % _LANES
    for at in range(0, whole, _LANES):  # several maxima, because a loop with a single one is not vectorized
        part = values[at : at + _LANES]
        for k in range(_LANES):
            lanes[k] = part[k] if part[k] > lanes[k] else lanes[k]
    for k in range(_LANES):
        minimum = lanes[k] if lanes[k] > minimum else minimum
    for at in range(whole, values.size):
        minimum = values[at] if values[at] > minimum else minimum
    return minimum


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _find_best(best, best_box, own, boxes, table):
    """Fill the best box and overlap of each anchor, and the best anchor of each box."""
    overlaps, lanes = new_array((_BLOCK,), np.float32), new_array((_LANES,), np.float32)
    highest = new_array((own.size,), np.float32)
    for a in range(best.size):  # assigning to slices would take longer to compile
        best[a], best_box[a] = -1, 0
    for box in range(own.size):
        own[box] = 0
    for start in range(0, best.size, _BLOCK):  # the anchors of a block stay in the L1 cache for all boxes
        stop = min(start + _BLOCK, best.size)
        some = overlaps[: stop - start]
        x0, y0, x1, y1 = table[0][start:stop], table[1][start:stop], table[2][start:stop], table[3][start:stop]
        areas = table[4][start:stop]
        for box in range(own.size):
            corners = boxes[box, 0], boxes[box, 1], boxes[box, 2], boxes[box, 3]
            _overlaps(some, best[start:stop], best_box[start:stop], box, corners, x0, y0, x1, y1, areas)
            if start == 0:
                highest[box] = some[0]
            found = _highest(some, highest[box], lanes)
            if found >= highest[box]:  # False for NaN
                highest[box] = found
                for a in range(some.size - 1, -1, -1):
                    if some[a] == found:
                        own[box] = start + a
                        break


@njit(nogil=True, cache=True, error_model="numpy")
def _match(out, out_labels, boxes, starts, labels, table, criteria, offset, scale, means, stds):
    count = table.shape[1]
    best, best_box = new_array((count,), np.float32), new_array((count,), np.int32)
    plain = np.zeros((count, 4), np.float32)  # the result for an anchor without a box
    if not offset:
        for a in range(count):
            for k in range(4):
                plain[a, k] = table[5 + k, a]
    half = np.float32(0.5)
    for n in range(starts.size - 1):
        first = starts[n]
        own = new_array((starts[n + 1] - first,), np.int64)
        _find_best(best, best_box, own, boxes[first : starts[n + 1]], table)
        for box in range(own.size):  # sequential: the last box wins an anchor
            best[own[box]], best_box[own[box]] = 2, box
        for a in range(count):
            out_labels[n, a] = 0
            for k in range(4):  # assigning a slice would take 2 s to compile
                out[n, a, k] = plain[a, k]
            if not best[a] > criteria:
                continue
            row = first + best_box[a]
            out_labels[n, a] = labels[row]
            for axis in range(2):
                start, end = boxes[row, axis], boxes[row, axis + 2]
                center, extent = (start + end) * half, end - start
                if offset:
                    size = table[7 + axis, a] * scale
                    center = ((center * scale - table[5 + axis, a] * scale) / size - means[axis]) / stds[axis]
                    extent = (np.log(extent * scale / size) - means[axis + 2]) / stds[axis + 2]
                out[n, a, axis], out[n, a, axis + 2] = center, extent


def match(
    out: np.ndarray, out_labels: np.ndarray, boxes: Rows, labels: np.ndarray, table: np.ndarray, *, criteria: float,
    offset: bool, scale: float, means: np.ndarray, stds: np.ndarray,
) -> None:  # fmt: skip
    """Match boxes to anchors.

    Args:
        out: float32 [N, A, 4], output.
        out_labels: int32 [N, A], output; 0 for anchors without a box.
        boxes: float32 [n, 4], left, top, right, bottom.
        labels: label of each box, integers [n].
        table: table from ``anchor_table``.
        criteria: an anchor is matched to its best box if the overlap is larger; the last box wins ties.
        offset: whether results are offsets from the anchor; otherwise they are centers and extents.
        scale: factor of boxes and anchors.
        means: float32 [4], subtracted from offsets.
        stds: float32 [4], divisors of offsets.
    """
    numbers = np.float32(criteria), offset, np.float32(scale)
    _match(
        out,
        out_labels,
        read_only(boxes.values),
        boxes.starts,
        read_only(labels.astype(np.int32, copy=False)),
        table,
        *numbers,
        means,
        stds,
    )


def match_on_device(
    out: Any, out_labels: Any, boxes: Rows, labels: Any, table: np.ndarray, *, criteria: float, offset: bool,
    scale: float, means: np.ndarray, stds: np.ndarray,
) -> None:  # fmt: skip
    """`match` for tensors; samples are padded to the maximum number of boxes."""
    device, max_boxes = out.device, int(boxes.lengths.max())
    anchors, divisors, middle = (uploaded(item, device) for item in (table, stds, means))
    plain = torch.zeros_like(out[0]) if offset else anchors[5:].T
    if max_boxes == 0:
        out.copy_(plain.expand_as(out))
        out_labels.zero_()
        return
    place = np.minimum(boxes.starts[:-1, None] + np.arange(max_boxes), len(boxes.values) - 1)
    is_there = uploaded(np.arange(max_boxes) < boxes.lengths[:, None], device)
    rows = uploaded(place, device)
    padded, own_labels = boxes.values[rows], labels.int()[rows]
    start = torch.maximum(padded[:, :, None, :2], anchors[:2].T)
    end = torch.minimum(padded[:, :, None, 2:], anchors[2:4].T)
    common = (end - start).clamp(min=0).prod(-1)
    union = (padded[..., 2:] - padded[..., :2]).prod(-1)[..., None] + anchors[4] - common
    overlaps = torch.where(union != 0, common / union, torch.zeros_like(union))
    overlaps = torch.where(is_there[..., None], overlaps, torch.full_like(overlaps, -1))
    best, best_box = _last_of_largest(overlaps, 1)
    _, own = _last_of_largest(overlaps, 2)
    # The last box wins an anchor.
    boxes_of = torch.arange(max_boxes, device=device).expand_as(own)
    forced = torch.full_like(best_box, -1)
    forced.scatter_reduce_(1, own, torch.where(is_there, boxes_of, torch.full_like(own, -1)), "amax")
    best_box = torch.where(forced >= 0, forced, best_box)
    chosen = (best > criteria) | (forced >= 0)
    place = padded.gather(1, best_box[..., None].expand(-1, -1, 4))
    center, extent = (place[..., :2] + place[..., 2:]) * 0.5, place[..., 2:] - place[..., :2]
    if offset:
        size = anchors[7:].T * scale
        center = ((center * scale - anchors[5:7].T * scale) / size - middle[:2]) / divisors[:2]
        extent = (torch.log(extent * scale / size) - middle[2:]) / divisors[2:]
    out.copy_(torch.where(chosen[..., None], torch.cat([center, extent], -1), plain))
    out_labels.copy_(torch.where(chosen, own_labels.gather(1, best_box), torch.zeros_like(own_labels[:1, :1])))


def _last_of_largest(values: Any, dim: int) -> tuple[Any, Any]:
    """Return the maximum along an axis and its last index: torch does not define which index it returns."""
    best = values.amax(dim, keepdim=True)
    shape = [1] * values.ndim
    shape[dim] = -1
    index = torch.arange(values.shape[dim], device=values.device).reshape(shape)
    last = torch.where(values == best, index, torch.zeros_like(index)).amax(dim)
    return best.squeeze(dim), last
