"""Geometry of crop windows for fn.crop, fn.crop_mirror_normalize and fn.resize_crop_mirror."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, IndexingError, check_option
from dalify.base.small_arrays import zeros
from dalify.base.wording import counted

# Names of the `out_of_bounds_policy` that fills the outside with `fill_values`.
FILLING = ("constant", "const", "fill", "pad")
POLICIES = ("error", *FILLING, "trim_to_shape")
_EXAMPLE = "Example: crop=[224, 224]."
_POSITIONS = {"D": "crop_pos_z", "F": "crop_pos_z", "H": "crop_pos_y", "W": "crop_pos_x"}
_EXTENTS = {"D": "crop_d", "F": "crop_d", "H": "crop_h", "W": "crop_w"}


def _is_given(value: Any) -> bool:
    # A value that is neither None nor a number varies per sample.
    return value is not None and not (isinstance(value, (int, float)) and value == 0)


def check_crop_arguments(
    *,
    crop: Any,
    crop_d: Any,
    crop_h: Any,
    crop_w: Any,
    rounding: str,
    policy: str | None = None,
    policies: Sequence[str] = POLICIES,
) -> None:
    """Check crop arguments for contradictions, as far as they are known when a graph is built.

    Args:
        crop: the user's value.
        crop_d: the user's value.
        crop_h: the user's value.
        crop_w: the user's value.
        rounding: the user's value.
        policy: the user's value; None if the operator has no policy.
        policies: policies supported by the operator.

    Raises:
        ArgumentValueError: `crop` is combined with one of the others, `crop_h` is used without `crop_w`, the number of
            extents is wrong, or an option is unknown.
    """
    separate = [_is_given(value) for value in (crop_d, crop_h, crop_w)]
    if crop is not None and any(separate):
        raise ArgumentValueError(
            "crop cannot be used together with crop_d, crop_h or crop_w.",
            hint="Use only crop=[height, width].",
            argument="crop",
        )
    if separate[1] != separate[2]:
        raise ArgumentValueError(
            "crop_h and crop_w must be used together; 0 is the same as no value.",
            hint="Or use crop=[height, width], where 0 is the whole extent.",
            argument="crop_h" if separate[1] else "crop_w",
        )
    if isinstance(crop, (tuple, list)) and len(crop) not in (2, 3):
        raise ArgumentValueError(
            f"crop must have 2 or 3 elements, one per axis; got {len(crop)}.", hint=_EXAMPLE, argument="crop"
        )
    check_option("rounding", rounding, ("round", "truncate"))
    if policy is not None:
        check_option("out_of_bounds_policy", policy, policies)


def check_fill_values(fill_values: Sequence[float], channels: int | np.ndarray) -> None:
    """Check that there is one fill value or one per channel.

    Args:
        fill_values: the fill values.
        channels: channels of a sample, or int64 [N] for all samples of a chunk.

    Raises:
        ArgumentValueError: the number of fill values is wrong.
    """
    counts: Any = np.atleast_1d(channels)
    wrong = np.flatnonzero(counts != len(fill_values))
    if len(fill_values) != 1 and len(wrong):
        raise ArgumentValueError(
            f"fill_values must be one number or one for each of the {counts[wrong[0]]} channels; got "
            f"{len(fill_values)}.",
            sample=int(wrong[0]) if np.ndim(channels) else None,
            argument="fill_values",
        )


def crop_extents(
    letters: str, extents: Sequence[int], *, crop: Any, crop_d: Any, crop_h: Any, crop_w: Any
) -> tuple[int, ...]:
    """Return the extents of a window.

    Args:
        letters: names of the axes that can be cropped, e.g. ``HW``, ``DHW``, or ``FHW`` for sequences.
        extents: extents of these axes in the source.
        crop: extents of the last axes, or None. Extents that are not positive mean the full extents.
        crop_d: extent of D; None, or not positive: the full extent.
        crop_h: extent of H, like `crop_d`.
        crop_w: extent of W, like `crop_d`.

    Raises:
        ArgumentValueError: there are more extents than axes.
    """
    if crop is not None:
        wanted = [int(extent) for extent in crop]
        _check_axes(len(wanted), letters, None)
        first = len(letters) - len(wanted)
        result = (
            *extents[:first],
            *(extent if extent > 0 else whole for extent, whole in zip(wanted, extents[first:], strict=True)),
        )
    else:
        separate = {"crop_d": crop_d, "crop_h": crop_h, "crop_w": crop_w}
        wanted = [int(separate[_EXTENTS[letter]] or 0) for letter in letters]
        result = tuple(extent if extent > 0 else whole for extent, whole in zip(wanted, extents, strict=True))
    return result


@cache
def _axes_of(layout: str) -> tuple[str, np.ndarray]:
    """Return the axes of a layout that can be cropped: their letters, and their indices, int64."""
    letters = layout.replace("C", "")
    return letters, np.array([layout.index(letter) for letter in letters], np.int64)


def _wanted_extents(letters: str, count: int, shaping: Mapping[str, Any]) -> np.ndarray:
    """Return the requested extents of `count` windows, int64 [axes, N]; not positive: the full extent.

    Raises:
        ArgumentValueError: there are more extents than axes; with the sample.
    """
    crop = shaping["crop"]
    if crop is None:
        columns = [shaping[_EXTENTS[letter]] for letter in letters]
        return _rows([zeros(count) if values is None else values for values in columns], count, np.int64)
    wanted = zeros((len(letters), count), np.int64)
    if isinstance(crop, list):
        for sample, own in enumerate(crop):
            _check_axes(len(own), letters, sample)
            wanted[len(letters) - len(own) :, sample] = own
    else:
        _check_axes(crop.shape[1], letters, 0)
        wanted[len(letters) - crop.shape[1] :] = crop.T
    return wanted


def _rows(values: Sequence[np.ndarray], count: int, dtype: Any) -> np.ndarray:
    """Return arrays [count] as one array, in a fifth of the time of ``np.array``."""
    return np.concatenate(values, dtype=dtype, casting="unsafe").reshape(len(values), count)


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _place(start, windows, shapes, wanted, axes, crop_pos, is_rounded, must_fit, skips_whole):
    """Fill extents and starts of windows.

    Args:
        start: int64 [N, ndim], output.
        windows: int64 [N, ndim], output.
        shapes: shapes of the sources, int64 [N, ndim].
        wanted: int64 [k, N], requested extents; not positive: the full extent.
        axes: int64 [k], axes that are cropped; the others are whole.
        crop_pos: float32 [k, N], 0 (start) to 1 (end).
        is_rounded: whether starts are rounded, halves away from zero; False: truncated.
        must_fit: whether windows must be inside.
        skips_whole: whether any position is allowed for windows that are whole samples; they start at 0.

    Returns:
        index in `axes` and sample of the first error, -1 without errors, and whether the position is wrong.
    """
    count, dimensions = shapes.shape
    for n in range(count):
        for axis in range(dimensions):
            start[n, axis], windows[n, axis] = 0, shapes[n, axis]
        for k in range(axes.size):
            if wanted[k, n] > 0:
                windows[n, axes[k]] = wanted[k, n]
    for k in range(axes.size):
        axis, too_large = axes[k], -1
        for n in range(count):
            is_whole = skips_whole
            for other in range(dimensions):
                is_whole = is_whole and windows[n, other] == shapes[n, other]
            if is_whole:
                continue
            position, margin = np.float64(crop_pos[k, n]), shapes[n, axis] - windows[n, axis]
            if not 0 <= position <= 1:  # also True for NaN
                return k, n, True
            if margin < 0 and must_fit and too_large < 0:
                too_large = n
            half = 0.0
            if is_rounded:
                half = 0.5 if margin >= 0 else -0.5
            # As in DALI, the position is a float32 and the product a float64: 0.7 of 10 pixels is slightly less than 7.
            start[n, axis] = np.int64(np.trunc(position * margin + half))
        if too_large >= 0:
            return k, too_large, False
    return -1, -1, False


def _check_axes(count: int, letters: str, sample: int | None) -> None:
    if count < 2:
        raise ArgumentValueError(
            f"crop must have 2 or 3 elements, one per axis; got {count}.",
            hint=_EXAMPLE,
            sample=sample,
            argument="crop",
        )
    if count > len(letters):
        raise ArgumentValueError(
            f"crop has {counted(count, 'element')}, but the data only has the axes {letters}.",
            sample=sample,
            argument="crop",
        )


def trimmed(
    start: np.ndarray, window: Sequence[int] | np.ndarray, extents: Sequence[int] | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Clip windows to the source: the policy ``trim_to_shape``.

    Args:
        start: int [N, axes].
        window: extents of the windows, [axes] or [N, axes].
        extents: extents of the source, [axes] or [N, axes].

    Returns:
        starts and extents, int64 [N, axes] each.
    """
    first = np.clip(start, 0, extents)
    last = np.clip(start + np.asarray(window), 0, extents)
    return first, np.maximum(last - first, 0)


def chunk_windows(
    shapes: np.ndarray,
    layout: str,
    shaping: Mapping[str, Any],
    crop_pos: Mapping[str, np.ndarray],
    rounding: str,
    policy: str,
    *,
    skips_whole: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the windows of a chunk.

    Args:
        shapes: shapes of the samples, int64 [N, ndim].
        layout: layout of a sample. C is not cropped.
        shaping: crop, crop_d, crop_h, crop_w: None, [N] or [N, k], or for crop a list of N vectors.
        crop_pos: ``crop_pos_x`` and so on, [N] each, 0 (start) to 1 (end).
        rounding: ``round`` (halves away from zero) or ``truncate``.
        policy: with ``error``, windows must be inside; with ``trim_to_shape``, they are clipped.
        skips_whole: whether any position is allowed for windows that are whole samples and not clipped.

    Returns:
        starts and extents, int64 [N, ndim].

    Raises:
        ArgumentValueError: there are more extents than axes, or a position is outside [0, 1]; with the sample.
        IndexingError: a window exceeds the source, and the policy is ``error``.
    """
    letters, axes = _axes_of(layout)
    wanted = _wanted_extents(letters, len(shapes), shaping)
    by_axis = _rows([crop_pos[_POSITIONS[letter]] for letter in letters], len(shapes), np.float32)
    start, windows = np.empty(shapes.shape, np.int64), np.empty(shapes.shape, np.int64)
    is_clipped = policy == "trim_to_shape"
    place, sample, is_position = _place(
        start, windows, shapes, wanted, axes, by_axis, rounding != "truncate", policy == "error",
        skips_whole and not is_clipped,
    )  # fmt: skip
    if is_position:
        name = _POSITIONS[letters[place]]
        raise ArgumentValueError(
            f"{name} must be in [0, 1]; got {by_axis[place, sample]:g}.",
            hint="It is a fraction: 0 is the start, 1 the end of the image. fn.slice takes positions in pixels.",
            sample=sample,
            argument=name,
        )
    if place >= 0:
        window, source = (" x ".join(map(str, shape[sample, axes].tolist())) for shape in (windows, shapes))
        raise IndexingError(
            f"a crop window of {window} does not fit into {source}.",
            hint="Resize first, or set out_of_bounds_policy to 'pad' or 'trim_to_shape'.",
            sample=sample,
        )
    return trimmed(start, windows, shapes) if is_clipped else (start, windows)
