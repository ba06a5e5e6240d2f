"""Make the transform that takes one box to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.kernels.affine import all_shapes, crop_map, dimensions, matrix_spec, vectors, write_joined
from dalify.registry import PerSample, Spec, operator


@operator
def crop(
    x: Spec | None = None,
    /,
    *,
    absolute: bool = False,
    from_end: PerSample[float | list[float]] = 1.0,
    from_start: PerSample[float | list[float]] = 0.0,
    reverse_order: bool = False,
    to_end: PerSample[float | list[float]] = 1.0,
    to_start: PerSample[float | list[float]] = 0.0,
) -> Spec:
    """Make the transform that takes one box to another.

    Points at `from_start` go to `to_start`, points at `from_end` to `to_end`: so coordinates follow a crop.

    Args:
        x: transforms [k, k + 1] to apply the new one to, or sequences [F, k, k + 1]; by default there is none.
        absolute: exchange start and end where start is larger, so that nothing is mirrored.
        from_end: upper corner of the box in the coordinates of the input; one value or k.
        from_start: lower corner.
        reverse_order: False: `x` is applied first, then the new transform; True: the other way round.
        to_end: upper corner of the box in the coordinates of the result.
        to_start: lower corner.

    Returns:
        float32 [k, k + 1] on the CPU, layout "**"; for sequences [F, k, k + 1], layout "F**".

    Raises:
        ShapeError: arguments or `x` of different dimensions.

    Example:
        >>> to_crop = fn.transforms.crop(from_start=[0.1, 0.2], from_end=[0.8, 0.6])  # doctest: +SKIP
    """
    return matrix_spec(x, _size(x, from_start, from_end, to_start, to_end))


def _size(x: Any, *corners: Any) -> int | None:
    found = dimensions(*corners)
    return None if found == 1 and x is not None else found


@crop.prepare
def _(x, *, from_start, from_end, to_start, to_end, count):
    corners = (from_start, from_end, to_start, to_end)
    return {} if any(isinstance(item, list) for item in corners) else all_shapes(x, _size(x, *corners), count)


@crop.cpu
def _(out, x, *, absolute, from_start, from_end, to_start, to_end, reverse_order):
    corners = [vectors(item, len(out), out.shape[-2]) for item in (from_start, from_end, to_start, to_end)]
    if absolute:
        source, target = np.sort(corners[:2], axis=0), np.sort(corners[2:], axis=0)
        corners = [*source, *target]
    write_joined(out, x, crop_map(*corners), reverse_order)
