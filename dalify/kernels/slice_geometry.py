"""Where the part of `fn.slice` begins and ends, from any mix of absolute and relative coordinates.

Stands alone because a decoder takes the same arguments, and because the rounding has to be DALI's to the bit: parts of
an extent often fall on halves, and 0.7 in float32 is a little less than 0.7.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError

__all__ = ["slice_bounds"]


def slice_bounds(
    extents: np.ndarray,
    *,
    start: Any,
    rel_start: Any,
    end: Any,
    rel_end: Any,
    shape: Any,
    rel_shape: Any,
    are_inputs: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return where a part begins and ends (one past its last element) on each axis, rounded half away from zero.

    Args:
        extents: int ``[N, k]`` of the data along the axes that are cut.
        start: where the part begins, in elements, ``[N, k]`` or ``[N, 1]``; None for the alternatives.
        rel_start: the same as a part of the extent; without both, 0.
        end: where it ends.
        rel_end: the same as a part of the extent.
        shape: its length; without any of the four, it ends where the data end.
        rel_shape: the same as a part of the extent.
        are_inputs: the coordinates were inputs: their products are in float64. Those of arguments are in float32, but
            for the sum of a relative start and a relative shape.

    Returns:
        int64 ``[N, k]`` each.

    Raises:
        ArgumentValueError: a part that ends before it begins, or coordinates that are no numbers; with the sample.
    """
    along = np.asarray(extents, np.float64)

    def elements(absolute: Any, relative: Any) -> np.ndarray | None:
        if relative is None:
            return None if absolute is None else np.asarray(absolute, np.float64) + np.zeros_like(along)
        if are_inputs:
            return np.asarray(relative, np.float64) * along
        return (np.asarray(relative, np.float32) * along.astype(np.float32)).astype(np.float64)

    first, last, length = elements(start, rel_start), elements(end, rel_end), elements(shape, rel_shape)
    if first is None:
        first = np.zeros_like(along)
    if last is None:
        if length is None:
            last = along
        elif rel_start is not None and rel_shape is not None and not are_inputs:
            last = (np.asarray(rel_start, np.float64) + np.asarray(rel_shape, np.float64)) * along
            # The two precisions must not turn an empty part into one that ends too early, as they do in DALI.
            last = np.where(np.asarray(rel_shape) >= 0, np.maximum(last, first), last)
        else:
            last = first + length
    for values in (first, last):
        wrong = ~(np.abs(values) < 2**31)
        if wrong.any():
            raise ArgumentValueError(
                f"coordinates must be numbers within 32 bits; got {values[wrong][0]:g}.",
                sample=int(np.argwhere(wrong)[0][0]),
            )
    begins, ends = (np.trunc(value + np.copysign(0.5, value)).astype(np.int64) for value in (first, last))
    if (ends < begins).any():
        where = tuple(np.argwhere(ends < begins)[0])
        raise ArgumentValueError(
            f"the part ends at {ends[where]}, before it begins at {begins[where]}.", sample=int(where[0])
        )
    return begins, ends
