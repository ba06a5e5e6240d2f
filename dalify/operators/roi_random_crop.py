"""Place a crop window at random so that it holds as much of a region as it can."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.registry import PerSample, Spec, operator


@operator(random=True, allocating=True)
def roi_random_crop(
    x: Spec | None = None,
    /,
    *,
    crop_shape: PerSample[int | list[int]],
    in_shape: PerSample[int | list[int]] | None = None,
    roi_end: PerSample[int | list[int]] | None = None,
    roi_shape: PerSample[int | list[int]] | None = None,
    roi_start: PerSample[int | list[int]],
) -> Spec:
    """Place a crop window of a given shape at random so that it holds as much of a region of interest as it can.

    Along each axis, a window that is shorter than the region lies inside it, and one that is longer holds all of it;
    each place that does so, and that is within the data where their shape is known, is equally likely.

    Args:
        x: data that will be cropped; only its shape is read. Its first axes are meant.
        crop_shape: extents of the window.
        in_shape: shape of the data, instead of `x`; without both, windows may reach out of the data.
        roi_end: where the region ends.
        roi_shape: extents of the region, instead of `roi_end`.
        roi_start: where the region begins.

    Returns:
        where the window begins, int64, one number for each element of `crop_shape`.

    Raises:
        ArgumentValueError: not exactly one of `roi_end` and `roi_shape`, `x` together with `in_shape`, or a window or
            region of negative extents.
        IndexingError: the region reaches out of the data, or the window is larger than them.
        ShapeError: arguments with other numbers of elements.

    Example:
        >>> start = fn.roi_random_crop(
        ...     crop_shape=[64, 64], roi_start=box[:2], roi_end=box[2:], in_shape=[480, 640]
        ... )  # doctest: +SKIP
        >>> images = fn.slice(images, start=start, shape=[64, 64], axis_names="HW")  # doctest: +SKIP
    """
    if (roi_end is None) == (roi_shape is None):
        raise ArgumentValueError("give either roi_end or roi_shape.")
    if x is not None and in_shape is not None:
        raise ArgumentValueError("the data tell their shape; in_shape must not be given with them.")
    return Spec(DALIDataType.INT64, 1, "")


def _vectors(name: str, values: Any, axes: int) -> np.ndarray:
    """Return an argument as int64 [N, axes]; a single number is for all axes."""
    if values.shape[1] not in (1, axes):
        raise ShapeError(f"{name} needs {axes} numbers, as many as crop_shape; got {values.shape[1]}.")
    return np.broadcast_to(values, (len(values), axes)).astype(np.int64)


def _refuse(wrong: np.ndarray, error: type[IndexingError] | type[ArgumentValueError], text: str, **values: Any) -> None:
    """Raise for the first sample and axis that are wrong; `text` names the values and ``{axis}``."""
    if not wrong.any():
        return
    sample, axis = np.argwhere(wrong)[0].tolist()
    found = error(text.format(axis=axis, **{name: int(value[sample, axis]) for name, value in values.items()}))
    found.sample = sample
    raise found


@roi_random_crop.cpu
def _(x, *, crop_shape, in_shape, roi_end, roi_shape, roi_start, draws):
    axes = crop_shape.shape[1]
    window = crop_shape.astype(np.int64)
    start = _vectors("roi_start", roi_start, axes)
    end = start + _vectors("roi_shape", roi_shape, axes) if roi_end is None else _vectors("roi_end", roi_end, axes)
    _refuse(
        window < 0, ArgumentValueError, "crop_shape must not be negative; got {window}, axis {axis}.", window=window
    )
    _refuse(
        end < start, ArgumentValueError, "the region ends before it begins: [{a}, {b}), axis {axis}.", a=start, b=end
    )
    shape = None if in_shape is None else _vectors("in_shape", in_shape, axes)
    if x is not None:
        if x.ndim - 1 < axes:
            raise ShapeError(f"crop_shape has {axes} numbers; the data have {x.ndim - 1} dimensions.")
        shape = np.tile(np.array(x.shape[1 : 1 + axes], np.int64), (len(window), 1))
    low, high = np.minimum(start, end - window), np.maximum(start, end - window)
    if shape is not None:
        _refuse(
            window > shape,
            IndexingError,
            "the window of {w} elements is larger than the data, {s}, axis {axis}.",
            w=window,
            s=shape,
        )
        _refuse(
            (start < 0) | (end > shape),
            IndexingError,
            "the region [{a}, {b}) reaches out of the data, {s} elements, axis {axis}.",
            a=start,
            b=end,
            s=shape,
        )
        low, high = np.maximum(low, 0), np.minimum(high, shape - window)
    places = high - low + 1
    return low + np.minimum((draws.uniform(axes) * places).astype(np.int64), places - 1)
