"""Searches for random windows that keep enough of the boxes, as in the training of SSD (Liu et al., 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dalify.base.array_at import new_array
from dalify.base.compiling import njit
from dalify.base.extremes import larger_of, smaller_of
from dalify.data.rows import Rows
from dalify.kernels.random.philox_words import philox4x32

_NUMBERS = 8  # random numbers per candidate: extents and corners of up to three axes, threshold, one unused
_LOW_32 = np.uint64(0xFFFFFFFF)
_SHIFT_32 = np.uint64(32)
_SHIFT_8 = np.uint64(8)


@dataclass(frozen=True)
class CropRules:
    """Criteria for a window.

    Attributes:
        thresholds: one of these is chosen at random for every round of `num_attempts` candidates.
        allow_no_crop: whether "no crop" is an additional choice.
        is_overlap: whether thresholds are the fraction of a box inside the window; False for intersection over union.
        all_boxes_above_threshold: whether all boxes must reach the threshold; False if one is enough.
        scaling: minimum and maximum extent relative to the image.
        aspect_ratio: for each pair of axes (xy, or xy, xz, yz) minimum and maximum ratio of extents.
        num_attempts: candidates per round. A candidate that reaches the threshold but keeps no box also ends the round.
        total_num_attempts: total number of candidates, after which the best one is used.
        bbox_prune_threshold: minimum fraction of a box's area in the window to keep it; None if its center must be
            inside.
    """

    thresholds: tuple[float, ...]
    allow_no_crop: bool
    is_overlap: bool
    all_boxes_above_threshold: bool
    scaling: tuple[float, float]
    aspect_ratio: tuple[tuple[float, float], ...]
    num_attempts: int
    total_num_attempts: int
    bbox_prune_threshold: float | None

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Thresholds, scaling and aspect ratios, float64."""
        values = self.thresholds, self.scaling, self.aspect_ratio
        return tuple([np.array(each, np.float64) for each in values])  # pyright: ignore[reportReturnType]


@dataclass(frozen=True)
class Found:
    """The windows of N samples.

    Attributes:
        anchors: float64 [N, axes], relative to the image.
        shapes: float64 [N, axes], relative to the image.
        boxes: the kept boxes, clipped and relative to the windows; float64 [n, 2 * axes].
        kept: bool [total], for each input box.
        is_valid: bool [N]; False if no candidate satisfied the criteria.
    """

    anchors: np.ndarray
    shapes: np.ndarray
    boxes: Rows
    kept: np.ndarray
    is_valid: np.ndarray


# The functions take whole arrays and a range of rows, and assign no slices, because slices take long to compile.


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _is_drawn(shape, numbers, scaling, ratios, extents, n):
    """Fill `shape` with random extents; return whether their ratios are allowed."""
    axes = shape.size
    for axis in range(axes):
        shape[axis] = scaling[0] + numbers[axis] * (scaling[1] - scaling[0])
    if axes == 2 and ratios[0, 0] == ratios[0, 1]:
        # Random extents do not have exactly the fixed ratio, so one side is computed from the other.
        ratio = ratios[0, 0] * extents[n, 1] / extents[n, 0]
        longest = larger_of(shape[1], shape[0])
        shape[0] = longest if ratio >= 1 else longest * ratio
        shape[1] = longest / ratio if ratio >= 1 else longest
        return True
    pair = 0
    for one in range(axes):
        for other in range(one + 1, axes):
            ratio = shape[one] * extents[n, one] / larger_of(1e-12, shape[other] * extents[n, other])
            if ratio < ratios[pair, 0] or ratio > ratios[pair, 1]:
                return False
            pair += 1
    return True


@njit(nogil=True, cache=True, error_model="numpy", no_cpython_wrapper=True)
def _area_inside(boxes, row, start, shape):
    axes, area = start.size, 1.0
    for axis in range(axes):
        low = larger_of(start[axis], boxes[row, axis])
        area *= larger_of(smaller_of(start[axis] + shape[axis], boxes[row, axis + axes]) - low, 0.0)
    return area


@njit(nogil=True, cache=True, error_model="numpy", no_cpython_wrapper=True)
def _keep(kept, boxes, first, last, areas, start, shape, bbox_prune_threshold):
    """Fill the mask of kept boxes; return their number. With a negative threshold, boxes are kept by their centers."""
    count, axes = 0, start.size
    for row in range(first, last):
        is_kept = True
        if bbox_prune_threshold < 0:
            for axis in range(axes):
                center = (boxes[row, axis] + boxes[row, axis + axes]) / 2
                is_kept &= start[axis] <= center
                is_kept &= center <= start[axis] + shape[axis]
        else:
            inside = _area_inside(boxes, row, start, shape)
            is_kept = inside > 0
            is_kept &= inside / larger_of(1e-12, areas[row]) >= bbox_prune_threshold
        kept[row] = is_kept
        count += is_kept
    return count


@njit(nogil=True, cache=True, error_model="numpy", no_cpython_wrapper=True)
def _score(boxes, first, last, areas, start, shape, is_overlap, all_boxes_above_threshold, threshold, best_score):
    """Return the score to compare with the threshold: the minimum or maximum overlap of boxes.

    A score below the threshold that does not exceed the best score so far may be too large.
    """
    result = 1.0 if all_boxes_above_threshold or first == last else 0.0
    window = 1.0
    for axis in range(shape.size):
        window *= shape[axis]
    for row in range(first, last):
        inside = _area_inside(boxes, row, start, shape)
        whole = areas[row]
        if not is_overlap:
            whole = whole + window - inside
        overlap = inside / larger_of(1e-12, whole)
        if not all_boxes_above_threshold:
            result = larger_of(overlap, result)
        elif overlap < result:
            result = overlap
            if result < threshold and result <= best_score:
                return result
    return result


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _draw(numbers, candidate, sample, step, k0, k1):
    """Fill the uniform numbers of a candidate; multiples of 2**-24."""
    for half in range(2):
        block = np.uint64(2 * candidate + half) & _LOW_32
        words = philox4x32(block, np.uint64(sample) & _LOW_32, step & _LOW_32, step >> _SHIFT_32, k0, k1)
        for i in range(4):
            numbers[4 * half + i] = np.float64(words[i] >> _SHIFT_8) * 2.0**-24


@njit(nogil=True, cache=True)
def _find_windows(
    boxes, starts, samples, step, k0, k1, thresholds, choices, is_overlap, all_boxes_above_threshold, scaling, ratios,
    num_attempts, total_num_attempts, bbox_prune_threshold, extents, fixed_shapes, anchors, shapes, kept, is_valid,
):  # fmt: skip
    """Fill the windows, and the mask of the boxes that they keep."""
    axes = anchors.shape[1]
    numbers = new_array((_NUMBERS,), np.float64)
    start, shape = new_array((axes,), np.float64), new_array((axes,), np.float64)
    areas = new_array((boxes.shape[0],), np.float64)
    for row in range(boxes.shape[0]):
        areas[row] = 1.0
        for axis in range(axes):
            areas[row] *= larger_of(boxes[row, axis + axes] - boxes[row, axis], 0.0)
    for n in range(starts.size - 1):
        first, last = starts[n], starts[n + 1]
        in_round, threshold, best_score, is_found, is_whole = 0, 0.0, -1.0, False, False
        for candidate in range(total_num_attempts):
            _draw(numbers, candidate, samples[n], step, k0, k1)
            if in_round == 0:
                choice = smaller_of(choices - 1, int(numbers[2 * axes] * choices))
                is_whole = choice == thresholds.size
                if is_whole:
                    break
                threshold = thresholds[choice]
            in_round += 1
            if in_round == num_attempts:
                in_round = 0
            if fixed_shapes.shape[1]:
                for axis in range(axes):
                    margin = extents[n, axis] - fixed_shapes[n, axis]
                    steps = int(numbers[axes + axis] * (abs(margin) + 1))
                    shape[axis] = fixed_shapes[n, axis] / extents[n, axis]
                    start[axis] = (steps if margin >= 0 else -steps) / extents[n, axis]
            else:
                if not _is_drawn(shape, numbers, scaling, ratios, extents, n):
                    continue
                for axis in range(axes):
                    start[axis] = numbers[axes + axis] * (1 - shape[axis])
            score = _score(
                boxes, first, last, areas, start, shape, is_overlap, all_boxes_above_threshold, threshold, best_score
            )  # fmt: skip
            if score > best_score:
                best_score = score
                for axis in range(axes):
                    anchors[n, axis], shapes[n, axis] = start[axis], shape[axis]
            if score >= threshold:
                is_found = _keep(kept, boxes, first, last, areas, start, shape, bbox_prune_threshold) or first == last
                if is_found:
                    break
                in_round = 0
        is_valid[n] = is_found or is_whole
        if is_found:  # `_keep` has filled the mask
            for axis in range(axes):
                anchors[n, axis], shapes[n, axis] = start[axis], shape[axis]
        elif is_whole or best_score < 0:
            for axis in range(axes):
                anchors[n, axis], shapes[n, axis] = 0.0, 1.0
            for row in range(first, last):
                kept[row] = True
        else:
            for axis in range(axes):
                start[axis], shape[axis] = anchors[n, axis], shapes[n, axis]
            _keep(kept, boxes, first, last, areas, start, shape, bbox_prune_threshold)


@njit(nogil=True, cache=True)
def _clip_boxes(boxes, starts, kept, anchors, shapes, out, out_starts):
    """Write the kept boxes relative to the windows, clipped to them."""
    axes, filled = anchors.shape[1], 0
    out_starts[0] = 0
    for n in range(starts.size - 1):
        for row in range(starts[n], starts[n + 1]):
            if not kept[row]:
                continue
            for axis in range(axes):
                extent = shapes[n, axis] if shapes[n, axis] != 0 else 1.0
                for k in range(axis, 2 * axes, axes):
                    inside = (boxes[row, k] - anchors[n, axis]) / extent
                    out[filled, k] = smaller_of(1.0, larger_of(0.0, inside))
            filled += 1
        out_starts[n + 1] = filled


@lru_cache(64)
def _no_extents(count: int) -> np.ndarray:
    return np.empty((count, 0))


@njit(cache=True)  # keeps the GIL, because releasing it takes longer than the computation
def first_outside(boxes, slack):
    """Return the first row with a number below ``-slack`` or above ``1 + slack``; -1 if there is none."""
    for row in range(boxes.shape[0]):
        for k in range(boxes.shape[1]):
            if not -slack <= boxes[row, k] <= 1 + slack:
                return row
    return -1


def search(
    boxes: Rows, draw_arguments: tuple[Any, ...], rules: CropRules, extents: np.ndarray, fixed_shapes: np.ndarray | None
) -> Found:
    """Find a window for each sample.

    Args:
        boxes: float64 [n, 2 * axes], start and end corners, relative to the image.
        draw_arguments: random numbers: ``Draws.numba_arguments`` of the samples.
        rules: criteria for the window.
        extents: extents of the images in pixels, float64 [N, axes]; ones if unknown.
        fixed_shapes: extents of the windows in pixels, float64 [N, axes]; None for random extents.

    Returns:
        the first candidate that satisfies the criteria; after `total_num_attempts`, the one with the best overlap.
    """
    count, axes, total = len(boxes), extents.shape[1], len(boxes.values)
    samples, _, k0, k1, step = draw_arguments
    thresholds, scaling, ratios = rules.arrays
    anchors, shapes = np.empty((count, axes)), np.empty((count, axes))
    kept, is_valid = np.empty(total, np.bool_), np.empty(count, np.bool_)
    out, out_starts = np.empty((total, 2 * axes)), np.empty(count + 1, np.int64)
    _find_windows(
        boxes.values, boxes.starts, samples, step, k0, k1, thresholds, thresholds.size + rules.allow_no_crop,
        rules.is_overlap, rules.all_boxes_above_threshold, scaling, ratios, rules.num_attempts,
        rules.total_num_attempts,
        -1.0 if rules.bbox_prune_threshold is None else rules.bbox_prune_threshold, extents,
        _no_extents(count) if fixed_shapes is None else fixed_shapes, anchors, shapes, kept, is_valid,
    )  # fmt: skip
    _clip_boxes(boxes.values, boxes.starts, kept, anchors, shapes, out, out_starts)
    return Found(anchors, shapes, Rows(out[: out_starts[-1]], out_starts), kept, is_valid)
