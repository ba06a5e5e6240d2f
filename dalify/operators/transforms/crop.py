"""Create the transform that maps one box to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.data import Batch
from dalify.kernels.images.affine import fill_crops, fill_transforms
from dalify.kernels.images.affine_rules import dimensions, matrix_spec, result_shape
from dalify.registry import VARIES_BY_FRAME, PerFrame, Spec, Vectors, on_groups, operator


@operator
def crop(
    x: Spec | None = None,
    /,
    *,
    absolute: bool = False,
    from_end: PerFrame[float | list[float]] = 1.0,
    from_start: PerFrame[float | list[float]] = 0.0,
    reverse_order: bool = False,
    to_end: PerFrame[float | list[float]] = 1.0,
    to_start: PerFrame[float | list[float]] = 0.0,
) -> Spec:
    """Create the transform that maps one box to another.

    It maps `from_start` to `to_start` and `from_end` to `to_end`, as for coordinates of a crop.

    Args:
        x: transforms [k, k + 1] to apply the new one to, or sequences [F, k, k + 1]; by default none.
        absolute: swap start and end if start is larger, so that nothing is mirrored.
        from_end: upper corner of the box in input coordinates; one value or k.
        from_start: lower corner.
        reverse_order: False: `x` is applied first, then the new transform; True: the reverse.
        to_end: upper corner of the box in output coordinates.
        to_start: lower corner.

    Returns:
        float32 [k, k + 1], layout "**"; [F, k, k + 1], layout "F**", if `x` is a sequence or an argument has one
        value per frame (``fn.per_frame``).

    Raises:
        DTypeError: a transform is not float32.
        ShapeError: arguments or `x` have different numbers of dimensions.

    Example:
        >>> to_crop = fn.transforms.crop(from_start=[0.1, 0.2], from_end=[0.8, 0.6])  # doctest: +SKIP
    """
    corners = (from_start, from_end, to_start, to_end)
    return matrix_spec(x, _size(x, *corners), VARIES_BY_FRAME in corners)


def _size(x: Any, *corners: Any) -> int | None:
    found = dimensions(*corners)
    return None if found == 1 and x is not None else found


@crop.prepare
def _(x: Batch | None, *, from_start: Vectors, from_end: Vectors, to_start: Vectors, to_end: Vectors) -> dict[str, Any]:
    corners = (from_start, from_end, to_start, to_end)
    is_ragged = any(isinstance(item, list) for item in corners)
    return result_shape(x, None if is_ragged else _size(x, *corners), *corners)


@crop.cpu_samples
@crop.gpu_samples
@on_groups()
def _(
    out: Any,
    x: Any,
    *,
    absolute: bool,
    from_start: np.ndarray,
    from_end: np.ndarray,
    to_start: np.ndarray,
    to_end: np.ndarray,
    reverse_order: bool,
) -> None:
    fill_transforms(out, x, reverse_order, fill_crops, (from_start, from_end, to_start, to_end), absolute)
