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
    "crop_anchors",
    "crop_extents",
    "first_of_group",
    "group_windows",
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


def check_fill_values(values: Sequence[float], channels: int) -> None:
    """Refuse a number of fill values that is neither 1 nor that of the channels.

    Raises:
        ArgumentValueError: see above.
    """
    if len(values) not in (1, channels):
        raise ArgumentValueError(
            f"fill_values must be one number or one for each of the {channels} channels; got {len(values)}."
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
        if len(wanted) > len(letters):
            raise ArgumentValueError(f"crop has {len(wanted)} elements, but the data have the axes {letters} only.")
        first = len(letters) - len(wanted)
        result = (
            *extents[:first],
            *(extent or whole for extent, whole in zip(wanted, extents[first:], strict=True)),
        )
    else:
        separate = {"D": crop_d, "F": crop_d, "H": crop_h, "W": crop_w}
        result = tuple(int(separate[letter] or 0) or extent for letter, extent in zip(letters, extents, strict=True))
    if min(result, default=1) < 0:
        raise ArgumentValueError(f"the extents of a crop window must not be negative; got {list(result)}.")
    return result


def crop_anchors(
    letters: str,
    extents: Sequence[int],
    window: Sequence[int],
    positions: Mapping[str, np.ndarray],
    rounding: str,
    policy: str,
    *,
    product: type[np.floating] = np.float32,
) -> np.ndarray:
    """Place the windows of a group.

    Args:
        letters: names of the axes.
        extents: extents of the source.
        window: extents of the windows, before they are trimmed.
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
    columns: list[Any] = []
    for letter, extent, size in zip(letters, extents, window, strict=True):
        name = _POSITIONS.get(letter, "crop_pos_z")
        position = np.asarray(positions[name], np.float32)
        # Written so that NaN fails; one sample, which ragged batches come as, needs no array arithmetic.
        if not (0 <= position.item() <= 1 if position.size == 1 else ((position >= 0) & (position <= 1)).all()):
            wrong = ~((position >= 0) & (position <= 1))
            raise ArgumentValueError(
                f"{name} must lie within 0..1; got {position[wrong][0]:g}.", sample=int(wrong.argmax())
            )
        half = product(0 if rounding == "truncate" else 0.5 if size <= extent else -0.5)
        if position.size == 1:
            columns.append(int(product(position.reshape(-1)[0]) * product(extent - size) + half))
        else:
            columns.append(np.trunc(position.astype(product) * product(extent - size) + half))
        if policy == "error" and not 0 <= size <= extent:
            raise IndexingError(
                f"a crop window of {' x '.join(map(str, window))} does not fit into {' x '.join(map(str, extents))}.",
                hint="Resize first, or write out_of_bounds_policy='pad' or 'trim_to_shape'.",
            )
    if columns and isinstance(columns[0], int):
        return np.array([columns], np.int64)
    return np.stack(columns, 1).astype(np.int64)


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


def group_windows(
    shape: Sequence[int],
    layout: str,
    shaping: Mapping[str, Any],
    positions: Mapping[str, np.ndarray],
    rounding: str,
    policy: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the windows of a group of samples of one shape.

    Args:
        shape: of a sample.
        layout: of a sample.
        shaping: crop, crop_d, crop_h, crop_w, as for `crop_extents`.
        positions: as for `crop_anchors`.
        rounding: as for `crop_anchors`.
        policy: what happens to windows that reach out of the source.

    Returns:
        anchors and extents, int64 [N, axes], for the axes of the layout without C.
    """
    letters = layout.replace("C", "")
    extents = [shape[layout.index(letter)] for letter in letters]
    window = crop_extents(letters, extents, **shaping)
    if list(window) == extents and policy != "trim_to_shape":  # nothing is cut off, wherever the window was to lie
        whole = (len(next(iter(positions.values()))), len(extents))
        return np.zeros(whole, np.int64), np.broadcast_to(np.asarray(window, np.int64), whole)
    anchors = crop_anchors(letters, extents, window, positions, rounding, policy)
    if policy == "trim_to_shape":
        return trimmed(anchors, window, extents)
    return anchors, np.broadcast_to(np.asarray(window, np.int64), anchors.shape)
