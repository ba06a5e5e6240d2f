"""Where a crop window lies: what fn.crop, fn.crop_mirror_normalize and fn.resize_crop_mirror have in common.

Alone in a file because the output rules of these operators need the extents of the window and their kernels its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dalify.base.errors import ArgumentValueError, IndexingError, option_error_text

__all__ = ["POLICIES", "check_crop_arguments", "crop_extents", "crop_window", "first_of_group"]

POLICIES = ("error", "constant", "pad", "trim_to_shape")
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
    *, crop: Any, crop_d: Any, crop_h: Any, crop_w: Any, rounding: str, policy: str | None = None
) -> None:
    """Refuse contradicting crop arguments, as far as they are known when a graph is built.

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
    if policy is not None and policy not in POLICIES:
        raise ArgumentValueError(option_error_text("out_of_bounds_policy", policy, POLICIES))


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
        result = (*extents[: len(letters) - len(wanted)], *wanted)
    else:
        separate = {"D": crop_d, "F": crop_d, "H": crop_h, "W": crop_w}
        result = tuple(int(separate[letter] or 0) or extent for letter, extent in zip(letters, extents, strict=True))
    if min(result, default=1) < 0:
        raise ArgumentValueError(f"the extents of a crop window must not be negative; got {list(result)}.")
    return result


_ROUNDING: dict[str, Callable[[float], int]] = {
    "round": lambda value: int(math.copysign(math.floor(abs(value) + 0.5), value)),
    "truncate": int,
}


def crop_window(
    letters: str,
    extents: Sequence[int],
    window: Sequence[int],
    positions: Mapping[str, float],
    rounding: str,
    policy: str,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Place a window.

    Args:
        letters: names of the axes.
        extents: extents of the source.
        window: extents of the window.
        positions: ``crop_pos_x`` and so on, 0 (start) to 1 (end).
        rounding: ``round`` (halves away from zero) or ``truncate``.
        policy: ``error``: the window has to be inside; ``pad``, ``constant``: it need not; ``trim_to_shape``: it is
            cut.

    Returns:
        anchor and extents of the window, one number per axis.

    Raises:
        ArgumentValueError: a position outside 0..1.
        IndexingError: the window reaches out of the source, and the policy is ``error``.
    """
    anchors = []
    for letter, extent, size in zip(letters, extents, window, strict=True):
        name = _POSITIONS.get(letter, "crop_pos_z")
        position = float(positions[name])
        if not 0 <= position <= 1:
            raise ArgumentValueError(f"{name} must lie within 0..1; got {position:g}.")
        anchors.append(_ROUNDING[rounding](position * (extent - size)))
    ends = [anchor + size for anchor, size in zip(anchors, window, strict=True)]
    is_inside = all(a >= 0 and e <= x for a, e, x in zip(anchors, ends, extents, strict=True))
    if not is_inside and policy == "error":
        raise IndexingError(
            f"a crop window of {' x '.join(map(str, window))} does not fit into {' x '.join(map(str, extents))}.",
            hint="Resize first, or write out_of_bounds_policy='pad' or 'trim_to_shape'.",
        )
    if not is_inside and policy == "trim_to_shape":
        anchors = [min(max(anchor, 0), extent) for anchor, extent in zip(anchors, extents, strict=True)]
        ends = [min(end, extent) for end, extent in zip(ends, extents, strict=True)]
        window = [max(0, end - anchor) for anchor, end in zip(anchors, ends, strict=True)]
    return tuple(anchors), tuple(window)
