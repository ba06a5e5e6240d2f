"""Draws a label of each mask by weights, and a box of each mask among those that are large enough."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalify.base.compiling import njit


class Options(NamedTuple):
    """The labels to choose from for each of N masks, with weights.

    Attributes:
        labels: labels of all masks, int64 [total].
        weights: weights of the labels, float64 [total].
        counts: number of labels of each mask, int64 [N].
    """

    labels: np.ndarray
    weights: np.ndarray
    counts: np.ndarray

    def take(self, numbers: np.ndarray) -> Options:
        """Return the options of some of the masks."""
        if len(numbers) == len(self.counts):
            return self
        is_kept = np.zeros(len(self.counts), np.bool_)
        is_kept[numbers] = True
        of_mask = np.repeat(is_kept, self.counts)
        return Options(self.labels[of_mask], self.weights[of_mask], self.counts[numbers])


def options_of(present: Options, backgrounds: np.ndarray, classes: Options | None) -> Options:
    """Return the labels that can be drawn.

    Args:
        present: labels in the masks, ascending.
        backgrounds: background label of each mask, int64 [N]; not drawn if `classes` is None.
        classes: the requested labels; None: all labels, with equal weights. Weights of repeated labels are added.
    """
    size = len(present.labels) if classes is None else len(classes.labels)
    labels, weights = np.empty(size, np.int64), np.empty(size, np.float64)
    counts = np.empty(len(backgrounds), np.int64)
    if classes is None:
        total = _all_but_background(labels, weights, counts, present.labels, present.counts, backgrounds)
    else:
        total = _present_classes(labels, weights, counts, present.labels, present.counts, *classes)
    return Options(labels[:total], weights[:total], counts)


@njit(nogil=True, cache=True)
def _all_but_background(labels, weights, counts, present, present_counts, backgrounds):
    total, first = 0, 0
    for n in range(len(counts)):
        start = total
        for i in range(first, first + present_counts[n]):
            if present[i] != backgrounds[n]:
                labels[total], weights[total] = present[i], 1.0
                total += 1
        first += present_counts[n]
        counts[n] = total - start
    return total


@njit(nogil=True, cache=True)
def _present_classes(labels, weights, counts, present, present_counts, classes, class_weights, class_counts):
    total, first, first_class = 0, 0, 0
    for n in range(len(counts)):
        own, start = present[first : first + present_counts[n]], total
        for c in range(first_class, first_class + class_counts[n]):
            at = np.searchsorted(own, classes[c])
            if at == own.size or own[at] != classes[c]:
                continue
            place = start
            while place < total and labels[place] != classes[c]:
                place += 1
            if place == total:
                labels[place], weights[place] = classes[c], 0.0
                total += 1
            weights[place] += class_weights[c]
        end, total = total, start
        for c in range(start, end):
            if weights[c] > 0:
                labels[total], weights[total] = labels[c], weights[c]
                total += 1
        first += present_counts[n]
        first_class += class_counts[n]
        counts[n] = total - start
    return total


def draw_options(options: Options, uniforms: np.ndarray) -> tuple[np.ndarray, Options]:
    """Draw a label of each mask.

    Args:
        options: at least one label of each mask.
        uniforms: numbers in [0, 1), float64 [N].

    Returns:
        the labels, int64 [N], and the options without them.
    """
    drawn, others = np.empty(len(uniforms), np.int64), np.empty(len(options.labels), np.bool_)
    _draw_options(drawn, others, *options, uniforms)
    return drawn, Options(options.labels[others], options.weights[others], options.counts - 1)


@njit(nogil=True, cache=True)
def _draw_options(drawn, others, labels, weights, counts, uniforms):
    first = 0
    for n in range(len(drawn)):
        end = first + counts[n]
        total = 0.0
        for c in range(first, end):
            total += weights[c]
            others[c] = True
        limit, c, total = uniforms[n] * total, first, weights[first]
        while c < end - 1 and total <= limit:
            c += 1
            total += weights[c]
        drawn[n] = labels[c]
        others[c] = False
        first = end


def draw_boxes(
    boxes: np.ndarray, counts: np.ndarray, uniforms: np.ndarray, minima: np.ndarray, k_largest: int
) -> np.ndarray:
    """Return the index of a box of each mask, int64 [N]; -1 if none is large enough.

    Args:
        boxes: int32 [total, 2, axes].
        counts: number of boxes of each mask, int64 [N].
        uniforms: numbers in [0, 1), float64 [N].
        minima: minimum extents, int64 [N, axes].
        k_largest: number of boxes to draw from: the largest ones.
    """
    found = np.empty(len(counts), np.int64)
    _draw_boxes(found, boxes, counts, uniforms, minima, k_largest)
    return found


@njit(nogil=True, cache=True)
def _draw_boxes(found, boxes, counts, uniforms, minima, k_largest):
    chosen, first = np.empty(len(boxes), np.int64), 0
    for n in range(len(counts)):
        count = 0
        for i in range(first, first + counts[n]):
            is_large = True
            for axis in range(boxes.shape[2]):
                is_large &= boxes[i, 1, axis] - boxes[i, 0, axis] >= minima[n, axis]
            if is_large:
                chosen[count] = i
                count += 1
        first += counts[n]
        found[n] = -1
        if count > 0:
            size = min(count, k_largest)
            rank = min(int(uniforms[n] * size), size - 1)
            found[n] = chosen[rank] if size == count else _nth_largest(boxes, chosen[:count], rank)


@njit(nogil=True, cache=True)
def _nth_largest(boxes, chosen, rank):
    """Return the box with a rank by descending volume; equal volumes keep their order."""
    volumes = np.empty(chosen.size, np.float64)
    for i in range(chosen.size):
        volumes[i] = 1.0
        for axis in range(boxes.shape[2]):
            volumes[i] *= np.float64(boxes[chosen[i], 1, axis] - boxes[chosen[i], 0, axis])
    best = 0
    for _ in range(rank + 1):
        best = 0
        for i in range(1, chosen.size):
            if volumes[i] > volumes[best]:
                best = i
        volumes[best] = -1.0
    return chosen[best]
