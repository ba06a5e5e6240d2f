"""Search for a random window that keeps enough of the bounding boxes, as SSD's training data are cropped.

Alone because it is the arithmetic of one operator, testable without a pipeline. Which window is found is a function of
the random numbers alone; they are drawn for many candidates at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit

__all__ = ["ATTEMPTS_AT_ONCE", "DRAWS_PER_ATTEMPT", "CropRules", "Found", "clipped_boxes", "search"]

DRAWS_PER_ATTEMPT = 8  # extents and corners of up to three axes, the threshold, and one to spare
ATTEMPTS_AT_ONCE = 16

_FOUND, _WHOLE, _EXHAUSTED, _CONTINUE = 0, 1, 2, 3


@dataclass(frozen=True)
class CropRules:
    """What a window has to satisfy.

    Attributes:
        thresholds: of which one is chosen at random for every round of `attempts` candidates.
        allow_no_crop: "no crop" is one more choice.
        is_overlap: thresholds are parts of each box inside the window; False: intersection over union.
        all_boxes: all boxes have to reach the threshold; False: one is enough.
        scaling: least and largest extent relative to the image.
        aspect_ratio: for each pair of axes (xy, or xy, xz, yz) the least and largest ratio of extents.
        attempts: candidates per round. A candidate that satisfies the rules and keeps no box ends the round too.
        total_attempts: candidates in all, before the best one is taken.
        prune_threshold: part of its area that a box must keep to survive; None: its centre must lie inside.
    """

    thresholds: tuple[float, ...]
    allow_no_crop: bool
    is_overlap: bool
    all_boxes: bool
    scaling: tuple[float, float]
    aspect_ratio: tuple[tuple[float, float], ...]
    attempts: int
    total_attempts: int
    prune_threshold: float | None


@dataclass(frozen=True)
class Found:
    """A window in relative coordinates, the boxes that it keeps [n], and whether it satisfies the rules."""

    anchor: np.ndarray
    shape: np.ndarray
    kept: np.ndarray
    is_valid: bool


@njit(nogil=True, cache=True)
def _draw_shape(shape, numbers, scaling, ratios, extents):
    """Fill `shape` with random extents; return whether their ratios fit."""
    axes = shape.size
    for axis in range(axes):
        shape[axis] = scaling[0] + numbers[axis] * (scaling[1] - scaling[0])
    if axes == 2 and ratios[0, 0] == ratios[0, 1]:
        # No random pair has exactly one ratio: the larger number becomes the longer side.
        ratio = ratios[0, 0] * extents[1] / extents[0]
        longest = max(shape[0], shape[1])
        shape[0] = longest if ratio >= 1 else longest * ratio
        shape[1] = longest / ratio if ratio >= 1 else longest
        return True
    pair = 0
    for one in range(axes):
        for other in range(one + 1, axes):
            ratio = shape[one] * extents[one] / max(shape[other] * extents[other], 1e-12)
            if ratio < ratios[pair, 0] or ratio > ratios[pair, 1]:
                return False
            pair += 1
    return True


@njit(nogil=True, cache=True)
def _area_inside(box, start, shape):
    area = 1.0
    for axis in range(start.size):
        first = max(box[axis], start[axis])
        area *= max(0.0, min(box[axis + start.size], start[axis] + shape[axis]) - first)
    return area


@njit(nogil=True, cache=True)
def _area(box):
    area = 1.0
    for axis in range(box.size // 2):
        area *= max(0.0, box[axis + box.size // 2] - box[axis])
    return area


@njit(nogil=True, cache=True)
def _keep(kept, boxes, start, shape, prune_threshold):
    """Fill which boxes survive; return their number. A negative threshold stands for the rule of the centre."""
    count = 0
    for n in range(boxes.shape[0]):
        if prune_threshold < 0:
            survives = True
            for axis in range(start.size):
                center = (boxes[n, axis] + boxes[n, axis + start.size]) / 2
                survives = survives and start[axis] <= center <= start[axis] + shape[axis]
        else:
            inside = _area_inside(boxes[n], start, shape)
            survives = inside > 0 and inside / max(_area(boxes[n]), 1e-12) >= prune_threshold
        kept[n] = survives
        count += survives
    return count


@njit(nogil=True, cache=True)
def _score(boxes, start, shape, is_overlap, all_boxes):
    """Return what is compared with the threshold: the worst box's overlap, or the best one's."""
    result = 1.0 if all_boxes or not boxes.shape[0] else 0.0
    window = 1.0
    for axis in range(shape.size):
        window *= shape[axis]
    for n in range(boxes.shape[0]):
        inside, area = _area_inside(boxes[n], start, shape), _area(boxes[n])
        overlap = inside / max(area if is_overlap else area + window - inside, 1e-12)
        result = min(result, overlap) if all_boxes else max(result, overlap)
    return result


@njit(nogil=True, cache=True)
def _try_candidates(
    boxes, uniforms, thresholds, choices, is_overlap, all_boxes, scaling, ratios, attempts, total_attempts,
    prune_threshold, extents, fixed_shape, progress, start, shape, kept, best,
):  # fmt: skip
    """Try the candidates that `uniforms` describe; return one of the outcomes.

    `progress` holds what is kept between calls: candidates in this round, candidates in all, threshold, best score.
    """
    axes = extents.size
    for k in range(uniforms.shape[0]):
        if progress[1] == total_attempts:
            return _EXHAUSTED
        if progress[0] == 0:
            choice = min(int(uniforms[k, 2 * axes] * choices), choices - 1)
            if choice == thresholds.size:
                return _WHOLE
            progress[2] = thresholds[choice]
        progress[0] = (progress[0] + 1) % attempts
        progress[1] += 1
        if fixed_shape.size:
            for axis in range(axes):
                room = extents[axis] - fixed_shape[axis]
                steps = int(uniforms[k, axes + axis] * (abs(room) + 1))
                shape[axis] = fixed_shape[axis] / extents[axis]
                start[axis] = (steps if room >= 0 else -steps) / extents[axis]
        else:
            if not _draw_shape(shape, uniforms[k], scaling, ratios, extents):
                continue
            for axis in range(axes):
                start[axis] = uniforms[k, axes + axis] * (1 - shape[axis])
        score = _score(boxes, start, shape, is_overlap, all_boxes)
        if score > progress[3]:
            progress[3] = score
            best[0], best[1] = start, shape
        if score < progress[2]:
            continue
        if _keep(kept, boxes, start, shape, prune_threshold) or not boxes.shape[0]:
            return _FOUND
        progress[0] = 0
    return _CONTINUE


def search(
    boxes: np.ndarray,
    draw: Callable[[int], np.ndarray],
    rules: CropRules,
    extents: np.ndarray,
    fixed_shape: np.ndarray | None,
) -> Found:
    """Find a window for one sample.

    Args:
        boxes: float64 [n, 2 * axes], start and end corners, relative to the image.
        draw: ``draw(i)``: float64 numbers in [0, 1) of the i-th portion of candidates,
            [ATTEMPTS_AT_ONCE, DRAWS_PER_ATTEMPT].
        rules: of the window.
        extents: of the image in pixels, [axes]; ones where they are not known.
        fixed_shape: extents of the window in pixels; None to draw them.

    Returns:
        The first candidate that satisfies the rules; after `total_attempts` the one with the best overlap.
    """
    axes, count = len(extents), len(boxes)
    thresholds = np.array(rules.thresholds, np.float64)
    scaling, ratios = np.array(rules.scaling, np.float64), np.array(rules.aspect_ratio, np.float64)
    fixed = np.empty(0) if fixed_shape is None else fixed_shape
    prune = -1.0 if rules.prune_threshold is None else rules.prune_threshold
    progress = np.array([0.0, 0.0, 0.0, -1.0])
    start, shape, kept, best = np.empty(axes), np.empty(axes), np.empty(count, np.bool_), np.empty((2, axes))
    outcome, portion = _CONTINUE, 0
    while outcome == _CONTINUE:
        outcome = _try_candidates(
            boxes, draw(portion), thresholds, thresholds.size + rules.allow_no_crop, rules.is_overlap, rules.all_boxes,
            scaling, ratios, rules.attempts, rules.total_attempts, prune, extents, fixed, progress, start, shape, kept,
            best,
        )  # fmt: skip
        portion += 1
    if outcome == _FOUND:
        return Found(start, shape, kept, True)
    if outcome == _WHOLE or progress[3] < 0:
        return Found(np.zeros(axes), np.ones(axes), np.ones(count, bool), outcome == _WHOLE)
    _keep(kept, boxes, best[0], best[1], prune)
    return Found(best[0], best[1], kept, False)


def clipped_boxes(boxes: np.ndarray, found: Found) -> np.ndarray:
    """Return the boxes that a window keeps, clipped to it and relative to it."""
    axes = len(found.anchor)
    corners = boxes[found.kept].reshape(-1, 2, axes)
    inside = (corners - found.anchor) / np.where(found.shape == 0, 1, found.shape)
    return np.clip(inside, 0, 1).reshape(-1, 2 * axes)
