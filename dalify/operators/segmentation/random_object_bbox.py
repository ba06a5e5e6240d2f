"""Draw a random object of a labeled mask and return its bounding box."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError, check_option
from dalify.base.narrow import is_array
from dalify.base.recent import Recent
from dalify.base.small_arrays import rows_at
from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.boxes.components import labels_of_samples, objects_of_samples
from dalify.kernels.boxes.object_draws import Options, draw_boxes, draw_options, options_of
from dalify.kernels.random.philox import SampleDraws
from dalify.registry import Parameters, PerSample, Spec, Vectors, operator

_FORMATS = ("anchor_shape", "start_end", "box")
_MAX_CACHED_MASKS = 10_000
_DIGEST_BYTES = 32
_NO_LIMIT = 2**62


def _output_count(arguments: Mapping[str, Any]) -> int:
    return (1 if arguments["format"] == "box" else 2) + bool(arguments["output_class"])


@dataclass(slots=True)
class Selection(Parameters):
    """Which objects are drawn, and which properties of the objects are returned.

    Attributes:
        cache_objects: cache the boxes of repeated masks, keyed by a hash of their pixels.
        format: "anchor_shape" and "start_end" (one past the end): two outputs; "box": start and end in one.
        ignore_class: every object is equally likely, regardless of its class.
        k_largest: draw from the objects with the k largest boxes, of the drawn class or of all with `ignore_class`.
        output_class: also return the label of the object; `background` if the box is the whole mask.
    """

    cache_objects: bool = False
    format: str = "anchor_shape"
    ignore_class: bool = False
    k_largest: int | None = None
    output_class: bool = False

    def numbers(self, axes: int) -> int:
        """Return how many numbers an output has for masks of some axes."""
        return axes * (2 if self.format == "box" else 1)


@operator(alphabetical=True, random=True, outputs=_output_count)
def random_object_bbox(
    x: Spec,
    /,
    *,
    background: PerSample[int] | None = None,
    class_weights: PerSample[float | list[float]] | None = None,
    classes: PerSample[int | list[int]] | None = None,
    foreground_prob: PerSample[float] = 1.0,
    selection: Selection,
    threshold: PerSample[int | list[int]] | None = None,
) -> tuple[Spec, ...]:
    """Draw a random object of a labeled mask and return its bounding box.

    With probability `foreground_prob`, one of the classes in the mask is drawn, and one of its objects: connected
    pixels of this label (pixels are connected if they share a face). Otherwise, and if no object qualifies, the box is
    the whole mask.

    Args:
        x: labels: integers of at most 32 bits or booleans, any number of axes.
        background: label of the background; by default 0, or if `classes` contains 0, their minimum minus 1.
        class_weights: relative probabilities of `classes`, or of the labels 1, 2, … by default.
        classes: labels to draw from; by default all except the background.
        foreground_prob: probability of drawing an object.
        threshold: minimum extents of a box, one for all axes or one each. A class without such a box is not drawn.

    Returns:
        int32, one number per axis (twice as many with "box"), and the label, int32.

    Raises:
        ArgumentValueError: an unknown format, mutually exclusive arguments, weights that are not probabilities, or
            a class that is the background.
        ShapeError: a mask without axes or pixels, or arguments with wrong numbers of elements.
        DTypeError: the labels are not integers of at most 32 bits.

    Example:
        >>> anchor, shape = fn.segmentation.random_object_bbox(masks, foreground_prob=0.7)  # doctest: +SKIP
    """
    check_option("format", selection.format, _FORMATS)
    if selection.ignore_class and (classes is not None or class_weights is not None or selection.output_class):
        raise ArgumentValueError("ignore_class cannot be combined with classes, class_weights or output_class.")
    if selection.k_largest is not None and selection.k_largest < 1:
        raise ArgumentValueError(f"k_largest must be at least 1; got {selection.k_largest}.")
    if (x.dtype is not None and not (x.dtype == DALIDataType.BOOL or x.dtype.is_integer)) or x.dtype in _TOO_WIDE:
        raise DTypeError(
            f"labels must be integers of at most 32 bits; got {x.dtype_text}.",
            hint="Convert it: fn.cast(x, dtype=types.INT32).",
        )
    if x.ndim == 0 or (x.shape is not None and 0 in x.shape):
        raise ShapeError(f"a mask must have pixels; got {'a scalar' if x.ndim == 0 else f'the shape {x.shape}'}.")
    numbers = None if x.ndim is None else selection.numbers(x.ndim)
    box = Spec(DALIDataType.INT32, 1, "", None if numbers is None else (numbers,))
    result = [box] if selection.format == "box" else [box, box]
    return (*result, Spec(DALIDataType.INT32, 0, "", ())) if selection.output_class else tuple(result)


_TOO_WIDE = (DALIDataType.INT64, DALIDataType.UINT64)


# Labels and boxes depend only on the mask, so caching does not change results.
_known: Recent[np.ndarray] = Recent(_MAX_CACHED_MASKS)


class _Masks:
    """Masks, and their labels and boxes, which may be cached.

    Args:
        x: the masks.
        is_cached: whether to cache labels and boxes for later calls with the same masks.
    """

    def __init__(self, x: Samples, is_cached: bool) -> None:
        self._x = x
        self._keys: list[Any] = []
        if is_cached:
            for mask in x.arrays():
                digest = hashlib.blake2b(mask.data, digest_size=_DIGEST_BYTES).digest()
                self._keys.append((digest, mask.shape, mask.dtype.str))

    def labels(self) -> Options:
        """Return the labels of the masks."""
        if not self._keys:
            labels, counts = labels_of_samples(self._x)
        else:
            labels, counts = self._from_cache(np.arange(len(self._x)), (), lambda x, _: labels_of_samples(x)[0])
        return Options(labels, np.ones(len(labels)), counts)

    def boxes(self, numbers: np.ndarray, labels: np.ndarray, is_excluded: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the result of `objects_of_samples` for some of the masks."""
        if not self._keys:
            return objects_of_samples(self._x.take(numbers), labels, is_excluded=is_excluded)

        def find(x: Samples, n: int) -> np.ndarray:
            return objects_of_samples(x, labels[n : n + 1], is_excluded=is_excluded)[0]

        return self._from_cache(numbers, [(label, is_excluded) for label in labels.tolist()], find)

    def _from_cache(
        self, numbers: np.ndarray, details: Sequence[Any], find: Callable[[Samples, int], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the results of a function for some of the masks, concatenated, and their lengths.

        Args:
            numbers: numbers of the masks.
            details: further parts of the cache key, one for each mask; empty: none.
            find: called with a mask and its index in `numbers`, if the result is not cached.
        """
        parts: list[np.ndarray] = []
        for n, number in enumerate(numbers.tolist()):
            mask = self._x.take(numbers[n : n + 1])
            key = (self._keys[number], details[n] if details else None)
            parts.append(_known.get_or_make(key, partial(find, mask, n))[0])
        return np.concatenate(parts), np.array([len(part) for part in parts], np.int64)


def _classes_of(
    sample: int, background: np.ndarray | None, classes: Vectors | None, class_weights: Vectors | None
) -> tuple[int, list[int] | None, list[float] | None]:
    """Check and return background, classes and weights of a sample; classes is None for all labels."""
    chosen = None if classes is None else [int(label) for label in classes[sample]]
    weights = None if class_weights is None else [float(weight) for weight in class_weights[sample]]
    if weights is not None:
        if chosen is None:
            chosen = list(range(1, len(weights) + 1))
        if len(weights) != len(chosen):
            raise ShapeError(
                f"class_weights must have one entry per class; got {len(weights)} for {len(chosen)} classes.",
                sample=sample,
            )
        if not all(0 <= weight < float("inf") for weight in weights):
            raise ArgumentValueError(f"class_weights must be finite and not negative; got {weights}.", sample=sample)
    if background is None:
        none = min(chosen) - 1 if chosen and 0 in chosen else 0
        return (none if none >= -(2**31) else 2**31 - 1), chosen, weights
    if chosen and int(background[sample]) in chosen:
        raise ArgumentValueError(f"the label {int(background[sample])} is both background and a class.", sample=sample)
    return int(background[sample]), chosen, weights


def _classes_of_samples(
    count: int, background: np.ndarray | None, classes: Vectors | None, class_weights: Vectors | None
) -> tuple[np.ndarray, Options | None]:
    """Return the background of each sample, int64 [N], and the classes; None for all labels."""
    given = [values for values in (background, classes, class_weights) if values is not None]
    is_one = all(is_array(values) and (values == values[0]).all() for values in given)
    each = [_classes_of(n, background, classes, class_weights) for n in range(1 if is_one else count)]
    each *= count if is_one else 1
    backgrounds = np.array([none for none, *_ in each], np.int64)
    if each[0][1] is None:
        return backgrounds, None
    rows = [(labels or [], [1.0] * len(labels or []) if weights is None else weights) for _, labels, weights in each]
    labels, weights = (np.array([value for row in side for value in row]) for side in zip(*rows, strict=True))
    sizes = np.array([len(row) for row, _ in rows], np.int64)
    return backgrounds, Options(labels.astype(np.int64), weights.astype(np.float64), sizes)


def _minima(threshold: Vectors | None, count: int, axes: int) -> np.ndarray:
    """Return the minimum extents of boxes, int64 [N, axes]."""
    found = np.zeros((count, axes), np.int64)
    if threshold is None:
        return found
    for n in range(1 if is_array(threshold) else count):
        if len(threshold[n]) not in (1, axes):
            text = f"threshold must have one number or {axes}, one per axis; got {len(threshold[n])}."
            raise ShapeError(text, sample=n)
    if is_array(threshold):
        found[:] = threshold
    else:
        for n, row in enumerate(threshold):
            found[n] = row
    return found


@random_object_bbox.geometry
def _(x: Batch, *, selection: Selection) -> dict[str, Any]:
    if not x.ndim or not x.shape_array().all():
        return {}  # the rule names the sample
    return {"out_shapes": np.full((len(x), 1), selection.numbers(x.ndim), np.int64)}


@random_object_bbox.cpu_samples
def _(
    *outputs_and_input: Samples,
    background: np.ndarray | None,
    class_weights: Vectors | None,
    classes: Vectors | None,
    foreground_prob: np.ndarray,
    selection: Selection,
    threshold: Vectors | None,
    draws: SampleDraws,
) -> None:
    *outputs, x = outputs_and_input
    minima = _minima(threshold, len(x), x.ndim)
    backgrounds, chosen = _classes_of_samples(len(x), background, classes, class_weights)
    begin, end, labels = np.zeros_like(x.shapes), x.shapes.copy(), backgrounds.copy()
    at = np.flatnonzero(draws.uniform(1)[:, 0] < foreground_prob)
    if len(at):
        masks = _Masks(x.take(at), selection.cache_objects)
        if selection.ignore_class:
            options = Options(backgrounds[at], np.ones(len(at)), np.ones(len(at), np.int64))
        else:
            options = options_of(masks.labels(), backgrounds[at], None if chosen is None else chosen.take(at))
        left, attempt = np.flatnonzero(options.counts), 0
        options = options.take(left)
        while len(left):  # a class without an object that qualifies is not drawn: another one is
            attempt += 1
            samples = at[left]
            uniforms = draws.take(samples).uniform(2, first_block=attempt)
            drawn, options = draw_options(options, uniforms[:, 0])
            boxes, counts = masks.boxes(left, drawn, selection.ignore_class)
            limit = _NO_LIMIT if selection.k_largest is None else selection.k_largest
            places = draw_boxes(boxes, counts, uniforms[:, 1], rows_at(minima, samples), limit)
            is_found = places >= 0
            found, places = samples[is_found], places[is_found]
            begin[found], end[found], labels[found] = boxes[places, 0], boxes[places, 1], drawn[is_found]
            again = np.flatnonzero(~is_found & (options.counts > 0))
            options, left = options.take(again), left[again]
    if selection.format == "box":
        results = [np.concatenate([begin, end], axis=1)]
    else:
        results = [begin, end - begin if selection.format == "anchor_shape" else end]
    for out, values in zip(outputs, [*results, labels][: len(outputs)], strict=True):
        assert out.dense is not None, "dalify bug: boxes of different numbers of axes"
        out.dense[...] = values.astype(np.int32)
