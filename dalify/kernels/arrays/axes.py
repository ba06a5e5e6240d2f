"""Axes by index or by letter, and specs of data without some axes, for operators with ``axes`` and ``axis_names``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.data.spec import Spec


def normal_axis(axis: int, ndim: int, *, extra: int = 0) -> int:
    """Return a non-negative axis.

    Args:
        axis: from ``-ndim - extra`` to ``ndim - 1 + extra``; negative axes count from the end.
        ndim: number of dimensions.
        extra: 1 for the position of an axis to insert.

    Raises:
        IndexingError: the axis is out of range.
    """
    size = ndim + extra
    if not size:
        raise IndexingError(f"axis {axis} does not exist: the samples are scalars.")
    if not -size <= axis < size:
        raise IndexingError(f"axis {axis} is out of range for {ndim}-D samples: it must be in [{-size}, {size - 1}].")
    return axis % size


def chosen_axes(spec: Spec, axes: Sequence[int] | None, axis_names: str | None) -> tuple[int, ...]:
    """Return the axes in ``axes`` or ``axis_names``, in ascending order; all axes if both are None.

    Args:
        spec: spec of the data; its number of dimensions is known.
        axes: indices; negative axes count from the end.
        axis_names: letters of the layout.

    Raises:
        ArgumentValueError: both are given, or an axis is repeated.
        IndexingError: the axis does not exist.
        LayoutError: the layout has no such letter.
    """
    assert spec.ndim is not None, "dalify bug: axes of data of unknown dimensions"
    if axes is not None and axis_names is not None:
        raise ArgumentValueError("specify either axes or axis_names, not both.")
    if axis_names is not None:
        chosen = [spec.axis(letter) for letter in axis_names]
    elif axes is not None:
        chosen = [normal_axis(axis, spec.ndim) for axis in axes]
    else:
        return tuple(range(spec.ndim))
    if len(set(chosen)) != len(chosen):
        raise ArgumentValueError(f"an axis is repeated in {axis_names or tuple(axes or ())!r}.")
    return tuple(sorted(chosen))


def check_distinct(axes: Sequence[int] | str) -> None:
    """Raise an ArgumentValueError if an axis is repeated. Axes are non-negative indices or letters."""
    if len(set(axes)) < len(axes):
        raise ArgumentValueError(f"axes must not be repeated; got {axes!r}.")


def check_distinct_rows(axes: np.ndarray) -> None:
    """Raise an ArgumentValueError if a row of `axes`, integers ``[N, k]``, contains an axis twice."""
    ordered = np.sort(axes, axis=1)
    is_repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if is_repeated.any():
        check_distinct(axes[int(is_repeated.argmax())].tolist())


def without_axes(spec: Spec, axes: Sequence[int]) -> Spec:
    """Return the spec of data without `axes` and their letters."""
    assert spec.ndim is not None, "dalify bug: axes of data of unknown dimensions"
    kept = [axis for axis in range(spec.ndim) if axis not in axes]
    layout = "".join(spec.layout[axis] for axis in kept) if spec.layout else spec.layout
    shape = None if spec.shape is None else tuple(spec.shape[axis] for axis in kept)
    return Spec(spec.dtype, len(kept), layout, shape, spec.device)


def reduced_spec(spec: Spec, axes: Sequence[int], dtype: DALIDataType, *, keep_dims: bool) -> Spec:
    """Return the output spec of a reduction.

    Args:
        spec: spec of the data.
        axes: reduced axes, not negative.
        dtype: dtype of the result.
        keep_dims: whether to keep reduced axes with extent 1.
    """
    if not keep_dims:
        return without_axes(spec, axes).replace(dtype=dtype)
    shape = spec.shape
    if shape is not None:
        shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return spec.replace(dtype=dtype, shape=shape)


def check_mean(mean: Spec, result: Spec) -> None:
    """Raise a ShapeError if the mean has neither one element nor one per result."""
    if mean.shape is None or result.shape is None:
        return
    count = math.prod(mean.shape)
    if count not in (1, math.prod(result.shape)):
        raise ShapeError(
            f"the mean with shape {mean.shape} does not match results with shape {result.shape}.",
            hint="Reduce both along the same axes, or pass one number.",
        )


def check_sequence(x: Spec) -> None:
    """Raise a LayoutError if data with a layout are no sequences: their first axis must be F."""
    if x.layout and x.layout[0] != "F":
        raise LayoutError(
            f"the layout {x.layout!r} does not start with F.",
            hint="fn.transpose moves the axis of frames to the front; fn.reinterpret(x, layout=...) names axes.",
        )


def check_layout(layout: str, ndim: int | None) -> None:
    """Raise a LayoutError if a layout does not have one letter per dimension; ``""`` matches any."""
    if layout and ndim is not None and len(layout) != ndim:
        raise LayoutError(
            f"the layout {layout!r} does not match {ndim}-D samples: it must have one letter per dimension."
        )
