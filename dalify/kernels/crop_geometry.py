"""Where a crop window lies: what fn.crop, fn.crop_mirror_normalize and fn.resize_crop_mirror have in common.

Alone in a file because the output rules of these operators need the extents of the window and their kernels its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, option_error_text

__all__ = [
    "FILLING",
    "POLICIES",
    "check_crop_arguments",
    "check_fill_values",
    "chunk_anchors",
    "chunk_extents",
    "chunk_windows",
    "crop_extents",
    "first_of_group",
    "trimmed",
]

# What `out_of_bounds_policy` is called where values outside the data are given by `fill_values`.
FILLING = ("constant", "const", "pad")
POLICIES = ("error", *FILLING, "trim_to_shape")
_POSITIONS = {"D": "crop_pos_z", "H": "crop_pos_y", "W": "crop_pos_x"}


def first_of_group(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of the first sample for each argument of a group; None stays None.

    Only for arguments that decide on shapes: all samples of a group have the same ones.
    """
    return {name: None if values is None else values[0] for name, values in arguments.items()}


def _is_given(value: Any) -> bool:
    # What is neither None nor a number varies from sample to sample.
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
    """Refuse contradicting crop arguments, as far as they are known when a graph is built.

    Args:
        crop: as the user gave it, like the three that follow.
        crop_d: see `crop`.
        crop_h: see `crop`.
        crop_w: see `crop`.
        rounding: as the user gave it.
        policy: as the user gave it; None where the operator has none.
        policies: those that the operator knows.

    Raises:
        ArgumentValueError: `crop` with one of the others, `crop_h` without `crop_w`, a wrong number of extents, or an
        unknown option.
    """
    separate = [_is_given(value) for value in (crop_d, crop_h, crop_w)]
    if crop is not None and any(separate):
        raise ArgumentValueError(
            "crop and crop_d, crop_h, crop_w must not be given together.", hint="Give crop=[height, width] alone."
        )
    if separate[1] != separate[2]:
        raise ArgumentValueError("crop_h and crop_w must be given together.", hint="Or give crop=[height, width].")
    if isinstance(crop, (tuple, list)) and len(crop) not in (2, 3):
        raise ArgumentValueError(
            f"crop must have 2 or 3 elements, one per axis; got {len(crop)}.", hint="For example crop=[224, 224]."
        )
    if rounding not in ("round", "truncate"):
        raise ArgumentValueError(option_error_text("rounding", rounding, ("round", "truncate")))
    if policy is not None and policy not in policies:
        raise ArgumentValueError(option_error_text("out_of_bounds_policy", policy, policies))


def check_fill_values(values: Sequence[float], channels: int | np.ndarray) -> None:
    """Refuse a number of fill values that is neither 1 nor that of the channels.

    Args:
        values: as given.
        channels: of a sample, or int64 [N] of all samples of a chunk.

    Raises:
        ArgumentValueError: see above.
    """
    counts: Any = np.atleast_1d(channels)
    wrong = np.flatnonzero(counts != len(values))
    if len(values) != 1 and len(wrong):
        raise ArgumentValueError(
            f"fill_values must be one number or one for each of the {counts[wrong[0]]} channels; got {len(values)}.",
            sample=int(wrong[0]) if np.ndim(channels) else None,
        )


def crop_extents(
    letters: str, extents: Sequence[int], *, crop: Any, crop_d: Any, crop_h: Any, crop_w: Any
) -> tuple[int, ...]:
    """Return the extents of a window.

    Args:
        letters: names of the axes that can be cropped, e.g. ``HW``, ``DHW``, or ``FHW`` for sequences.
        extents: extents of these axes in the source.
        crop: extents for the last axes, or None.
        crop_d: extent of D, 0 or None for all of it; the same for `crop_h` and `crop_w`.
        crop_h: see `crop_d`.
        crop_w: see `crop_d`.

    Raises:
        ArgumentValueError: more extents than axes, or negative ones.
    """
    if crop is not None:
        wanted = [int(extent) for extent in crop]
        _check_axes(len(wanted), letters, None)
        first = len(letters) - len(wanted)
        result = (
            *extents[:first],
            *(extent or whole for extent, whole in zip(wanted, extents[first:], strict=True)),
        )
    else:
        separate = {"D": crop_d, "F": crop_d, "H": crop_h, "W": crop_w}
        result = tuple(int(separate[letter] or 0) or extent for letter, extent in zip(letters, extents, strict=True))
    if min(result, default=1) < 0:
        raise _negative(list(result))
    return result


def chunk_extents(letters: str, extents: np.ndarray, shaping: Mapping[str, Any]) -> np.ndarray:
    """Return the extents of the windows of a chunk.

    Args:
        letters: names of the axes, as for `crop_extents`.
        extents: int64 [N, axes], of the sources.
        shaping: crop, crop_d, crop_h, crop_w: None, [N] or [N, k], or, of crop, a list of N vectors.

    Returns:
        int64 [N, axes].

    Raises:
        ArgumentValueError: as `crop_extents`, with the sample.
    """
    wanted = np.zeros_like(extents)
    crop = shaping["crop"]
    if isinstance(crop, list):
        for sample, own in enumerate(crop):
            _check_axes(len(own), letters, sample)
            wanted[sample, len(letters) - len(own) :] = own
    elif crop is not None:
        _check_axes(crop.shape[1], letters, 0)
        wanted[:, len(letters) - crop.shape[1] :] = crop
    else:
        names = {"D": "crop_d", "F": "crop_d", "H": "crop_h", "W": "crop_w"}
        for axis, letter in enumerate(letters):
            values = shaping[names[letter]]
            if values is not None:
                wanted[:, axis] = values
    result = np.where(wanted == 0, extents, wanted)
    if (result < 0).any():
        sample = int((result < 0).any(1).argmax())
        raise _negative(result[sample].tolist(), sample)
    return result


def _check_axes(count: int, letters: str, sample: int | None) -> None:
    if count > len(letters):
        raise ArgumentValueError(
            f"crop has {count} elements, but the data have the axes {letters} only.", sample=sample
        )


def _negative(extents: list[int], sample: int | None = None) -> ArgumentValueError:
    return ArgumentValueError(f"the extents of a crop window must not be negative; got {extents}.", sample=sample)


def chunk_anchors(
    letters: str,
    extents: np.ndarray,
    windows: np.ndarray,
    positions: Mapping[str, np.ndarray],
    rounding: str,
    policy: str,
    *,
    product: type[np.floating] = np.float32,
) -> np.ndarray:
    """Place the windows of a chunk.

    Args:
        letters: names of the axes.
        extents: int64 [N, axes], of the sources.
        windows: int64 [N, axes], extents of the windows, before they are trimmed.
        positions: ``crop_pos_x`` and so on, [N] each, 0 (start) to 1 (end).
        rounding: ``round`` (halves away from zero) or ``truncate``.
        policy: with ``error``, windows have to be inside.
        product: in what a position is multiplied: 0.7 of 5 pixels is 3.5, or a little less.

    Returns:
        int64 [N, axes].

    Raises:
        ArgumentValueError: a position outside 0..1.
        IndexingError: a window reaches out of the source, and the policy is ``error``.
    """
    anchors = np.zeros_like(extents)
    for axis, letter in enumerate(letters):
        name = _POSITIONS.get(letter, "crop_pos_z")
        position = np.asarray(positions[name], np.float32)
        wrong = ~((position >= 0) & (position <= 1))  # written so that NaN is wrong
        if wrong.any():
            raise ArgumentValueError(
                f"{name} must lie within 0..1; got {position[wrong][0]:g}.", sample=int(wrong.argmax())
            )
        room = extents[:, axis] - windows[:, axis]
        half = product(0) if rounding == "truncate" else np.where(room >= 0, product(0.5), product(-0.5))
        anchors[:, axis] = np.trunc(position.astype(product) * room.astype(product) + half)
        if policy == "error" and (room < 0).any():
            sample = int((room < 0).argmax())
            window, source = (" x ".join(map(str, shape[sample].tolist())) for shape in (windows, extents))
            raise IndexingError(
                f"a crop window of {window} does not fit into {source}.",
                hint="Resize first, or write out_of_bounds_policy='pad' or 'trim_to_shape'.",
                sample=sample,
            )
    return anchors


def trimmed(
    anchors: np.ndarray, window: Sequence[int] | np.ndarray, extents: Sequence[int] | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Cut windows to the source: the policy ``trim_to_shape``.

    Args:
        anchors: int [N, axes].
        window: extents of the windows, [axes] or [N, axes].
        extents: extents of the source, [axes] or [N, axes].

    Returns:
        anchors and extents, int64 [N, axes] each.
    """
    first = np.clip(anchors, 0, extents)
    last = np.clip(anchors + np.asarray(window), 0, extents)
    return first, np.maximum(last - first, 0)


def chunk_windows(
    shapes: np.ndarray,
    layout: str,
    shaping: Mapping[str, Any],
    positions: Mapping[str, np.ndarray],
    rounding: str,
    policy: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the windows of a chunk.

    Args:
        shapes: int64 [N, dimensions] of the samples.
        layout: of a sample.
        shaping: crop, crop_d, crop_h, crop_w, as for `chunk_extents`.
        positions: as for `chunk_anchors`.
        rounding: as for `chunk_anchors`.
        policy: what happens to windows that reach out of the source.

    Returns:
        anchors and extents, int64 [N, axes], for the axes of the layout without C.
    """
    letters = layout.replace("C", "")
    extents = shapes[:, [layout.index(letter) for letter in letters]]
    windows = chunk_extents(letters, extents, shaping)
    anchors = np.zeros_like(extents)
    if policy == "trim_to_shape":
        anchors = chunk_anchors(letters, extents, windows, positions, rounding, policy)
        return trimmed(anchors, windows, extents)
    # What is taken as a whole may have any position.
    cut = np.flatnonzero((windows != extents).any(1))
    if len(cut):
        own = positions if len(cut) == len(extents) else {name: values[cut] for name, values in positions.items()}
        try:
            anchors[cut] = chunk_anchors(letters, extents[cut], windows[cut], own, rounding, policy)
        except (ArgumentValueError, IndexingError) as error:
            error.sample = int(cut[error.sample or 0])
            raise
    return anchors, windows
