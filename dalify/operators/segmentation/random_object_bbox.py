"""Draw a random object of a labeled mask and return its bounding box."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError, option_error_text
from dalify.base.recent import Recent
from dalify.data.dtypes import DALIDataType
from dalify.kernels.boxes.components import object_boxes, present_labels
from dalify.kernels.random.philox import SampleDraws
from dalify.registry import PerSample, Spec, operator

_FORMATS = ("anchor_shape", "start_end", "box")
_MAX_CACHED_MASKS = 10_000
_DIGEST_BYTES = 32


def _output_count(arguments: Mapping[str, Any]) -> int:
    return (1 if arguments["format"] == "box" else 2) + bool(arguments["output_class"])


@operator(random=True, outputs=_output_count)
def random_object_bbox(
    x: Spec,
    /,
    *,
    background: PerSample[int] | None = None,
    cache_objects: bool = False,
    class_weights: PerSample[float | list[float]] | None = None,
    classes: PerSample[int | list[int]] | None = None,
    foreground_prob: PerSample[float] = 1.0,
    format: str = "anchor_shape",
    ignore_class: bool = False,
    k_largest: int | None = None,
    output_class: bool = False,
    threshold: PerSample[int | list[int]] | None = None,
) -> tuple[Spec, ...]:
    """Draw a random object of a labeled mask and return its bounding box.

    With probability `foreground_prob`, one of the classes in the mask is drawn, and one of its objects: connected
    pixels of this label (pixels are connected if they share a face). Otherwise, and if no object qualifies, the box is
    the whole mask.

    Args:
        x: labels: integers of at most 32 bits or booleans, any number of axes.
        background: label of the background; by default 0, or if `classes` contains 0, their minimum minus 1.
        cache_objects: cache the boxes of repeated masks, keyed by a hash of their pixels.
        class_weights: relative probabilities of `classes`, or of the labels 1, 2, … by default.
        classes: labels to draw from; by default all except the background.
        foreground_prob: probability of drawing an object.
        format: "anchor_shape" and "start_end" (one past the end): two outputs; "box": start and end in one.
        ignore_class: every object is equally likely, regardless of its class.
        k_largest: draw from the objects with the k largest boxes, of the drawn class or of all with `ignore_class`.
        output_class: also return the label of the object; `background` if the box is the whole mask.
        threshold: minimum extents of a box, one for all axes or one each. A class without such a box is not drawn.

    Returns:
        int32, one number per axis (twice as many with "box"), and the label, int32.

    Raises:
        ArgumentValueError: an unknown format, arguments that are mutually exclusive, weights that are no probabilities,
            or a class that is the background.
        ShapeError: a mask without axes or pixels, or arguments with wrong numbers of elements.
        DTypeError: the labels are not integers of at most 32 bits.

    Example:
        >>> anchor, shape = fn.segmentation.random_object_bbox(masks, foreground_prob=0.7)  # doctest: +SKIP
    """
    if format not in _FORMATS:
        raise ArgumentValueError(option_error_text("format", format, _FORMATS))
    if ignore_class and (classes is not None or class_weights is not None or output_class):
        raise ArgumentValueError("ignore_class cannot be combined with classes, class_weights or output_class.")
    if k_largest is not None and k_largest < 1:
        raise ArgumentValueError(f"k_largest must be at least 1; got {k_largest}.")
    if (x.dtype is not None and not (x.dtype == DALIDataType.BOOL or x.dtype.is_integer)) or x.dtype in _TOO_WIDE:
        raise DTypeError(
            f"labels must be integers of at most 32 bits; got {x.dtype!s}.", hint="fn.cast(x, dtype=types.INT32)"
        )
    if x.ndim == 0 or (x.shape is not None and 0 in x.shape):
        raise ShapeError(f"a mask must have pixels; got {'a scalar' if x.ndim == 0 else f'the shape {x.shape}'}.")
    numbers = None if x.ndim is None else x.ndim * (2 if format == "box" else 1)
    box = Spec(DALIDataType.INT32, 1, "", None if numbers is None else (numbers,))
    result = [box] if format == "box" else [box, box]
    return (*result, Spec(DALIDataType.INT32, 0, "", ())) if output_class else tuple(result)


_TOO_WIDE = (DALIDataType.INT64, DALIDataType.UINT64)


# Boxes depend only on the mask, so caching does not change results.
_known_boxes: Recent[np.ndarray] = Recent(_MAX_CACHED_MASKS)


def _boxes_of(mask: np.ndarray, digest: bytes, label: int, is_excluded: bool) -> np.ndarray:
    """Return `object_boxes` of a mask, cached."""
    key = (digest, mask.shape, mask.dtype.str, label, is_excluded)
    return _known_boxes.get_or_make(key, lambda: object_boxes(mask, label, is_excluded=is_excluded))[0]


def _classes_of(
    sample: int, background: np.ndarray | None, classes: Any, class_weights: Any
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


def _pick(weights: list[float], uniform: float) -> int:
    """Return an index drawn by weights, from a number in [0, 1)."""
    ends = np.cumsum(weights)
    return min(int(np.searchsorted(ends, uniform * ends[-1], side="right")), len(weights) - 1)


def _qualified_boxes(boxes: np.ndarray, threshold: np.ndarray | None, k_largest: int | None) -> np.ndarray:
    if threshold is not None:
        boxes = boxes[(boxes[:, 1] - boxes[:, 0] >= threshold).all(axis=1)]
    if k_largest is not None and len(boxes) > k_largest:
        volumes = (boxes[:, 1] - boxes[:, 0]).astype(np.float64).prod(axis=1)
        boxes = boxes[np.argsort(-volumes, kind="stable")[:k_largest]]
    return boxes


@random_object_bbox.cpu
def _(
    *outputs_and_input: np.ndarray,
    background: np.ndarray | None,
    cache_objects: bool,
    class_weights: np.ndarray | None,
    classes: np.ndarray | None,
    foreground_prob: np.ndarray,
    format: str,
    ignore_class: bool,
    k_largest: int | None,
    output_class: bool,
    threshold: np.ndarray | None,
    draws: SampleDraws,
) -> None:
    *outputs, x = outputs_and_input
    masks = x.view(np.uint8) if x.dtype == np.bool_ else x
    axes = x.ndim - 1
    if threshold is not None and any(len(row) not in (1, axes) for row in threshold):
        raise ShapeError(f"threshold must have one number or {axes}, one per axis; got {len(threshold[0])}.")
    is_object = draws.uniform(1)[:, 0] < foreground_prob
    attempts: list[np.ndarray] = []
    for n, mask in enumerate(masks):
        none, requested, weights = _classes_of(n, background, classes, class_weights)
        begin, end, label = np.zeros(axes, np.int32), np.array(mask.shape, np.int32), none
        if is_object[n]:
            digest = hashlib.blake2b(mask.data, digest_size=_DIGEST_BYTES).digest() if cache_objects else None

            def boxes_of(
                label: int, is_excluded: bool, n: int = n, mask: Any = mask, digest: Any = digest
            ) -> np.ndarray:
                if digest is None:
                    found = object_boxes(mask, label, is_excluded=is_excluded)
                else:
                    found = _boxes_of(mask, digest, label, is_excluded)
                return _qualified_boxes(found, None if threshold is None else threshold[n], k_largest)

            if ignore_class:
                candidates = {none: 1.0}
            else:
                candidates = _candidates(present_labels(mask).tolist(), none, requested, weights)
            attempt = 0
            while candidates:
                if len(attempts) == attempt:  # for all samples at once; most need only the first
                    attempts.append(draws.uniform(2, first_block=1 + attempt))
                uniforms = attempts[attempt][n]
                chosen = list(candidates)[_pick(list(candidates.values()), uniforms[0])]
                boxes = boxes_of(chosen, ignore_class)
                if len(boxes):
                    begin, end = boxes[min(int(uniforms[1] * len(boxes)), len(boxes) - 1)]
                    label = chosen
                    break
                del candidates[chosen]
                attempt += 1
        if format == "box":
            outputs[0][n, :axes], outputs[0][n, axes:] = begin, end
        else:
            outputs[0][n], outputs[1][n] = begin, end - begin if format == "anchor_shape" else end
        if output_class:
            outputs[-1][n] = label


def _candidates(
    present: list[int], background: int, classes: list[int] | None, weights: list[float] | None
) -> dict[int, float]:
    """Return the weights of the classes in the mask."""
    if classes is None:
        return {label: 1.0 for label in present if label != background}
    there = set(present)
    found: dict[int, float] = {}
    for place, label in enumerate(classes):
        if label in there:
            found[label] = found.get(label, 0.0) + (1.0 if weights is None else weights[place])
    return {label: weight for label, weight in found.items() if weight > 0}
