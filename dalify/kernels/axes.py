"""Axes by number or by letter, and what becomes of shape and layout when axes go.

Alone in a file because every operator with ``axes=`` and ``axis_names=`` reads them the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.data.spec import Spec

__all__ = ["check_centre", "check_layout", "chosen_axes", "normal_axis", "reduced_spec", "without_axes"]


def normal_axis(axis: int, ndim: int, *, extra: int = 0, name: str = "axis") -> int:
    """Return an axis counted from the front.

    Args:
        axis: from ``-ndim - extra`` to ``ndim - 1 + extra``; negative ones count from the back.
        ndim: number of dimensions.
        extra: 1 for a position between axes, as of an axis to be inserted.
        name: of the argument, for the message.

    Raises:
        IndexingError: out of that range.
    """
    size = ndim + extra
    if not -size <= axis < size:
        raise IndexingError(f"{name} {axis} is out of range for {ndim}-D samples: it must be in [{-size}, {size - 1}].")
    return axis % size if size else 0


def chosen_axes(spec: Spec, axes: Sequence[int] | None, axis_names: str | None) -> tuple[int, ...]:
    """Return the axes that the arguments ``axes`` and ``axis_names`` name, in ascending order; all of them for neither.

    Args:
        spec: of the data; its number of dimensions is known.
        axes: numbers; negative ones count from the back.
        axis_names: letters of the layout.

    Raises:
        ArgumentValueError: both are given, or an axis twice.
        IndexingError: there is no such axis.
        LayoutError: the layout has no such letter.
    """
    assert spec.ndim is not None, "dalify bug: axes of data of unknown dimensions"
    if axes is not None and axis_names is not None:
        raise ArgumentValueError("give either axes or axis_names, not both.")
    if axis_names is not None:
        chosen = [spec.axis(letter) for letter in axis_names]
    elif axes is not None:
        chosen = [normal_axis(axis, spec.ndim) for axis in axes]
    else:
        return tuple(range(spec.ndim))
    if len(set(chosen)) != len(chosen):
        raise ArgumentValueError(f"an axis is named twice in {axis_names or tuple(axes or ())!r}.")
    return tuple(sorted(chosen))


def without_axes(spec: Spec, axes: Sequence[int]) -> Spec:
    """Return the spec of data whose `axes` are gone, with their letters."""
    assert spec.ndim is not None, "dalify bug: axes of data of unknown dimensions"
    kept = [axis for axis in range(spec.ndim) if axis not in axes]
    layout = "".join(spec.layout[axis] for axis in kept) if spec.layout else spec.layout
    shape = None if spec.shape is None else tuple(spec.shape[axis] for axis in kept)
    return Spec(spec.dtype, len(kept), layout, shape, spec.device)


def reduced_spec(spec: Spec, axes: Sequence[int], dtype: DALIDataType, *, keep_dims: bool) -> Spec:
    """Return the spec of a reduction's result.

    Args:
        spec: of the data.
        axes: reduced ones, not negative.
        dtype: of the result.
        keep_dims: reduced axes stay, with extent 1.
    """
    if not keep_dims:
        return without_axes(spec, axes).replace(dtype=dtype)
    shape = spec.shape
    if shape is not None:
        shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return spec.replace(dtype=dtype, shape=shape)


def check_centre(centre: Spec, result: Spec) -> None:
    """Raise a ShapeError where a centre of deviations has neither one element nor as many as there are results."""
    if centre.shape is None or result.shape is None:
        return
    count = math.prod(centre.shape)
    if count not in (1, math.prod(result.shape)):
        raise ShapeError(
            f"the mean of shape {centre.shape} does not fit results of shape {result.shape}.",
            hint="Reduce both along the same axes, or give one number.",
        )


def check_layout(layout: str, ndim: int | None) -> None:
    """Raise a LayoutError where a layout does not have one letter for each dimension; ``""`` fits any."""
    if layout and ndim is not None and len(layout) != ndim:
        raise LayoutError(
            f"the layout {layout!r} does not fit {ndim}-D samples: it needs one letter for each dimension."
        )
