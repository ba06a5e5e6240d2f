"""Draw a random crop window that keeps enough of the bounding boxes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError, check_option
from dalify.base.small_arrays import all_of
from dalify.base.wording import counted
from dalify.data import DALIDataType, Rows
from dalify.kernels.boxes.bbox_crop import CropRules, first_outside, search
from dalify.kernels.boxes.box_layout import from_corners, to_corners
from dalify.kernels.random.philox import SampleDraws
from dalify.registry import Parameters, PerSample, Spec, Vectors, operator

# DALI may search indefinitely; after this many candidates, the best candidate is used.
_MAX_CANDIDATES = 10_000
_SLACK = 1e-3  # tolerance for boxes outside the image because of rounding
_TYPES = ("iou", "overlap")


def _output_count(arguments: Mapping[str, Any]) -> int:
    return 3 + (arguments["input_count"] > 1) + bool(arguments["output_bbox_indices"])


@dataclass(slots=True, unsafe_hash=True)
class Candidates(Parameters):
    """How windows are drawn, and which are accepted.

    Attributes:
        all_boxes_above_threshold: every box must reach the threshold; False: at least one.
        allow_no_crop: the result can be the whole image; ignored with `crop_shape`.
        aspect_ratio: minimum and maximum ratio x / y of the extents; for volumes also for x / z and y / z. In pixels
            with `input_shape`, else relative to the image.
        bbox_prune_threshold: drop boxes that keep less than this fraction of their area, instead of those with their
            center outside.
        num_attempts: number of candidates per threshold.
        scaling: minimum and maximum extent relative to the image.
        threshold_type: "iou", intersection over union of box and window; "overlap", fraction of the box inside.
        thresholds: minimum values of `threshold_type`; one is drawn at random for every `num_attempts` candidates.
        total_num_attempts: number of candidates after which the best candidate is used; by default 10,000.
    """

    all_boxes_above_threshold: bool = True
    allow_no_crop: bool = True
    aspect_ratio: list[float] = field(default_factory=lambda: [1.0, 1.0])
    bbox_prune_threshold: float | None = None
    num_attempts: int = 1
    scaling: list[float] = field(default_factory=lambda: [1.0, 1.0])
    threshold_type: str = "iou"
    thresholds: list[float] = field(default_factory=lambda: [0.0])
    total_num_attempts: int = -1

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Minimum and maximum ratio of each pair of axes; one for all pairs, or one each."""
        return list(zip(self.aspect_ratio[::2], self.aspect_ratio[1::2], strict=False))

    @property
    def has_extents(self) -> bool:
        """Whether the extents of windows are specified; the default values count as not specified."""
        return any(list(values) != [1.0, 1.0] for values in (self.scaling, self.aspect_ratio))

    def check(self) -> None:
        """Raise ArgumentValueError for an unknown option or an invalid range."""
        check_option("threshold_type", self.threshold_type, _TYPES)
        if len(self.scaling) != 2 or not 0 <= self.scaling[0] <= self.scaling[1]:
            raise ArgumentValueError(f"scaling must be a non-negative range [min, max]; got {list(self.scaling)}.")
        if len(self.aspect_ratio) not in (2, 6) or any(
            not (0 <= low <= high and high > 0) for low, high in self.ranges
        ):
            raise ArgumentValueError(
                "aspect_ratio must be one or three ranges [min, max] with min >= 0 and max > 0; got "
                f"{list(self.aspect_ratio)}."
            )
        if self.bbox_prune_threshold is not None and not 0 <= self.bbox_prune_threshold <= 1:
            raise ArgumentValueError(
                f"bbox_prune_threshold must be between 0 and 1; got {self.bbox_prune_threshold:g}."
            )
        if self.num_attempts < 1 or not self.thresholds:
            raise ArgumentValueError("num_attempts must be at least 1 and thresholds must not be empty.")
        if self.total_num_attempts < 1 and self.total_num_attempts != -1:
            raise ArgumentValueError(
                f"total_num_attempts must be at least 1; got {self.total_num_attempts}.",
                hint=f"Omit it for {_MAX_CANDIDATES:,} candidates.",
            )
        if not all(0 <= threshold <= 1 for threshold in self.thresholds):
            raise ArgumentValueError(f"thresholds must be between 0 and 1; got {list(self.thresholds)}.")

    @lru_cache(64)  # noqa: B019 -- a group is small
    def rules(self, axes: int, is_fixed: bool) -> CropRules:
        """Return the criteria for windows.

        Args:
            axes: number of axes of the image.
            is_fixed: whether the extents of the window are specified.
        """
        ranges, pairs = tuple(self.ranges), 1 if axes == 2 else 3
        return CropRules(
            tuple(self.thresholds),
            self.allow_no_crop and not is_fixed,
            self.threshold_type == "overlap",
            self.all_boxes_above_threshold,
            (self.scaling[0], self.scaling[1]),
            ranges * pairs if len(ranges) == 1 else ranges[:pairs],
            self.num_attempts,
            self.total_num_attempts if self.total_num_attempts > 0 else _MAX_CANDIDATES,
            self.bbox_prune_threshold,
        )


@operator(alphabetical=True, random=True, outputs=_output_count)
def random_bbox_crop(
    boxes: Spec,
    labels: Spec | None = None,
    /,
    *,
    bbox_layout: str | None = None,
    candidates: Candidates,
    crop_shape: PerSample[list[int]] | None = None,
    input_shape: PerSample[list[int]] | None = None,
    ltrb: bool = True,
    output_bbox_indices: bool = False,
    quiet: bool = False,
    shape_layout: str | None = None,
) -> tuple[Spec, ...]:
    """Draw a random crop window that keeps enough of the bounding boxes (Liu et al., SSD, arXiv:1512.02325).

    Candidates have extents uniform in `scaling` with a ratio in `aspect_ratio`, and a uniform position. The first one
    that reaches the threshold and keeps a box is used. Boxes with their center outside are dropped; others are clipped
    and made relative to the window. If `aspect_ratio` allows a single ratio, the longer side is the larger of two
    random extents; for ratios below 1, windows in DALI can be higher than the image.

    Args:
        boxes: float32 [n, 4], or [n, 6] for volumes, relative to the image (0 to 1).
        labels: n integers; labels of dropped boxes are dropped.
        bbox_layout: letters of a box: "xyXY" (corners), "xyWH" (corner and extents), "xyzXYZ" …; instead of `ltrb`.
        crop_shape: extents of the window in pixels; requires `input_shape`. The window is then returned in pixels.
        input_shape: extents of the image in pixels.
        ltrb: boxes are left, top, right, bottom; False: left, top, width, height.
        output_bbox_indices: also return the indices of the kept boxes.
        quiet: do not warn if no candidate satisfies the conditions.
        shape_layout: order of the extents in `crop_shape` and `input_shape`, by default "WH" or "WHD".

    Returns:
        Anchor and shape of the window (float32, x first), the boxes, then labels (if specified) and indices (int32, if
        requested).

    Raises:
        ArgumentValueError: an unknown option, an invalid range, boxes outside the image, extents that are not positive,
            or `crop_shape` without `input_shape` or with `scaling` or `aspect_ratio`.
        DTypeError: the boxes are not float32.
        ShapeError: the boxes are neither [n, 4] nor [n, 6].

    Example:
        >>> anchor, shape, boxes, labels = fn.random_bbox_crop(
        ...     boxes, labels, scaling=[0.3, 1.0], aspect_ratio=[0.5, 2.0], thresholds=[0, 0.1, 0.3, 0.5]
        ... )  # doctest: +SKIP
    """
    if boxes.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(
            f"boxes must be float32; got {boxes.dtype_text}.", hint="Convert them: fn.cast(boxes, dtype=types.FLOAT)."
        )
    if boxes.shape is not None and (len(boxes.shape) != 2 or boxes.shape[1] not in (4, 6)):
        raise ShapeError(f"boxes must be [n, 4] or [n, 6]; got {boxes.shape}.")
    candidates.check()
    if bbox_layout is not None and not ltrb:
        raise ArgumentValueError(
            f"bbox_layout={bbox_layout!r} and ltrb=False both specify the order of the numbers of a box; pass only one."
        )
    if crop_shape is not None and input_shape is None:
        raise ArgumentValueError("crop_shape requires input_shape, the extents of the image in pixels.")
    if crop_shape is not None and candidates.has_extents:
        raise ArgumentValueError(
            "crop_shape specifies the extents of the window; scaling and aspect_ratio cannot be combined with it."
        )
    if labels is not None and boxes.shape and labels.shape and labels.shape[0] != boxes.shape[0]:
        raise ShapeError(
            f"there must be one label per box; got {counted(boxes.shape[0], 'box')} and labels of shape {labels.shape}."
        )
    vector = Spec(DALIDataType.FLOAT, 1, "")
    result = [vector, vector, Spec(DALIDataType.FLOAT, 2, "")]
    if labels is not None:
        result.append(labels.replace(shape=None, layout=""))
    if output_bbox_indices:
        result.append(Spec(DALIDataType.INT32, 1, ""))
    return tuple(result)


def _extents(values: Any, axes: int, shape_layout: str | None, name: str) -> np.ndarray:
    """Return extents [N, k] in the order W, H, D, float64 [N, axes]."""
    layout = "WHD"[:axes] if shape_layout is None else shape_layout
    expected = "WHD"[:axes]
    if sorted(layout) != sorted(expected):
        raise ArgumentValueError(f"shape_layout must name {', '.join(expected)}; got {layout!r}.")
    if values.shape[1] != axes:
        raise ShapeError(f"{name} must have {axes} extents; got {values.shape[1]}.")
    if (values <= 0).any():
        sample = int(np.argmax((values <= 0).any(axis=1)))
        raise ArgumentValueError(f"{name} must be positive; got {values[sample].tolist()}.", sample=sample)
    return np.ascontiguousarray(values[:, [layout.index(letter) for letter in expected]], np.float64)


@lru_cache(64)  # nothing changes it
def _unknown_extents(count: int, axes: int) -> np.ndarray:
    return np.ones((count, axes))


@random_bbox_crop.cpu_new_rows
def _(
    boxes: Rows,
    labels: Rows | None,
    *,
    bbox_layout: str | None,
    candidates: Candidates,
    crop_shape: Vectors | None,
    input_shape: Vectors | None,
    ltrb: bool,
    output_bbox_indices: bool,
    quiet: bool,
    shape_layout: str | None,
    draws: SampleDraws,
) -> tuple[np.ndarray | Rows, ...]:
    axes = boxes.values.shape[1] // 2
    layout = bbox_layout
    if layout is None:
        layout = "xyzXYZ" if axes == 3 else "xyXY" if ltrb else "xyWH"
    rules = candidates.rules(axes, crop_shape is not None)
    corners = Rows(to_corners(boxes.values.astype(np.float64), layout), boxes.starts)
    row = first_outside(corners.values, _SLACK)
    if row >= 0:
        box = [float(f"{value:g}") for value in boxes.values[row]]  # 0.1, not 0.10000000149
        raise ArgumentValueError(
            f"boxes must be relative to the image, between 0 and 1; got {box}.",
            hint="Divide coordinates in pixels by the width and height of the image. With ltrb=False boxes are [x, y, "
            "width, height].",
            sample=int(np.searchsorted(boxes.starts, row, side="right")) - 1,
        )
    count = len(boxes.starts) - 1
    extents = _unknown_extents(count, axes)
    if input_shape is not None:
        extents = _extents(input_shape, axes, shape_layout, "input_shape")
    fixed = None if crop_shape is None else _extents(crop_shape, axes, shape_layout, "crop_shape")
    found = search(corners, draws.draws.numba_arguments(draws.samples), rules, extents, fixed)
    if not quiet and not all_of(found.is_valid, None):
        failed = int(np.argmin(found.is_valid))
        warnings.warn(
            f"random_bbox_crop found no window for {counted(boxes.lengths[failed], 'box')} after "
            f"{rules.total_num_attempts} candidates and uses the best candidate; pass quiet=True if that is expected.",
            stacklevel=2,
        )
    starts, window = found.boxes.starts, (found.anchors, found.shapes)
    if fixed is not None:
        window = found.anchors * extents, found.shapes * extents
    results: list[np.ndarray | Rows] = [values.astype(np.float32) for values in window]
    results.append(Rows(from_corners(found.boxes.values, layout).astype(np.float32), starts))
    if labels is not None:
        results.append(Rows(labels.values[found.kept], starts))
    if output_bbox_indices:
        rows = np.flatnonzero(found.kept)
        sample_starts = np.repeat(boxes.starts[:-1], found.boxes.lengths)
        results.append(Rows((rows - sample_starts).astype(np.int32), starts))
    return tuple(results)
