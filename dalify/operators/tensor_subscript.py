"""Index samples: the node that ``node[1, ::2, index]`` creates in a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    EllipsisError,
    IndexingError,
    LayoutError,
    ShapeError,
)
from dalify.base.narrow import is_array
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.data import Samples
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.registry import Spec, on_groups, operator

_FAR = 1 << 62


@operator(stands_for="indexing")
def tensor_subscript(x: Spec, /, *indices: Spec, items: object) -> Spec:
    """Index each sample with integers, slices and steps.

    Users write ``x[0]``, ``x[..., 1:]``, ``x[::-1]``, ``x[start:stop]`` with graph values, or ``x[newaxis]``.

    Args:
        x: any data.
        indices: the graph values among the indices: one integer per sample.
        items: one entry per item of the index, created by `dalify.graph.subscript`.

    Returns:
        The selected data. Integers remove their axis and its letter; an unnamed new axis drops the layout, a named one
        adds its letter.

    Raises:
        IndexingError: an integer out of range (slices are clipped), or more items than dimensions.
        ArgumentValueError: a step of zero.
        ArgumentTypeError: invalid ``items`` of a serialized graph.
        DTypeError: an index is not an integer.
        LayoutError: some new axes have a letter and others do not, or the data has no layout for named new axes.
        ShapeError: an index is not a scalar per sample.

    Example:
        >>> red = images[:, :, 0]  # doctest: +SKIP
    """
    for index in indices:
        if index.ndim:
            raise ShapeError(
                f"an index must be a scalar integer per sample; got {counted(index.ndim, 'dimension')}.",
                hint="Take one element, index[0]. Masks are not indices: multiply, x * (x > 3), or use "
                "fn.python_function.",
            )
        if index.dtype is not None and not index.dtype.is_integer:
            raise DTypeError(
                f"an index must be an integer; got {index.dtype_text}.",
                hint="Use fn.cast(index, dtype=types.INT32).",
            )
    if not isinstance(items, tuple) or not all(_is_entry(item, len(indices)) for item in items):
        raise ArgumentTypeError(
            f"items must be created by indexing; got {str(items)[:200]}.",
            hint="Write x[0], x[..., 1:] or x[start:].",
        )
    assert x.ndim is not None, "dalify bug: indexing data of unknown dimensions"
    layout, letters, names = x.layout or "", "", []
    axis = ndim = 0
    for item in _expand(items, x.ndim):
        if item[0] == "newaxis":
            names.append(item[1])
            letters += item[1] or ""
            ndim += 1
        else:
            if item[0] == "slice":
                letters += layout[axis : axis + 1]
                ndim += 1
                if item[3] == 0:
                    raise ArgumentValueError("the step of a slice must not be zero.")
            elif x.shape is not None and isinstance(item[1], int):
                _check_index(item[1], x.shape[axis], axis)
            axis += 1
    if any(name is None for name in names):
        if any(name is not None for name in names):
            raise LayoutError("either all new axes or none must have a letter.")
        letters = ""
    elif names and not layout and x.ndim:
        raise LayoutError(f"newaxis({names[0]!r}) requires data with a layout.")
    return Spec(x.dtype, ndim, letters, None, x.device)


def _is_entry(item: Any, count: int) -> bool:
    """Return whether an item is a valid entry of `dalify.graph.subscript` with ``count`` graph values."""

    def is_number(value: Any) -> bool:
        if isinstance(value, tuple):
            return len(value) == 2 and value[0] == "node" and isinstance(value[1], int) and 0 <= value[1] < count
        return isinstance(value, int)

    match item:
        case ("at", place):
            return is_number(place)
        case ("slice", *parts):
            return len(parts) == 3 and all(part is None or is_number(part) for part in parts)
        case ("newaxis", letter):
            return letter is None or (isinstance(letter, str) and len(letter) == 1)
        case ("ellipsis",):
            return True
    return False


def _expand(items: Any, ndim: int) -> list[tuple[Any, ...]]:
    """Return one item for each axis, and the new axes between them."""
    consumed = sum(1 for item in items if item[0] in ("at", "slice"))
    if consumed > ndim:
        raise IndexingError(f"too many indices ({consumed}) for {ndim}-D samples.")
    rest = [("slice", None, None, None)] * (ndim - consumed)
    ellipses = [place for place, item in enumerate(items) if item[0] == "ellipsis"]
    if len(ellipses) > 1:
        raise EllipsisError("an index can have only one `...`.")
    if not ellipses:
        return [*items, *rest]
    return [*items[: ellipses[0]], *rest, *items[ellipses[0] + 1 :]]


def _check_index(index: int, extent: int, axis: int) -> None:
    if not -extent <= index < extent:
        raise IndexingError(f"index {index} is out of range for axis {axis} of extent {extent}.")


def _python_index(items: Any, shape: tuple[int, ...], values: list[int]) -> tuple[Any, ...]:
    """Return the index of one sample, with graph values filled in and integers made non-negative."""

    def number(value: Any) -> Any:
        return values[value[1]] if isinstance(value, tuple) else value

    result: list[Any] = []
    axis = 0
    for item in _expand(items, len(shape)):
        if item[0] == "newaxis":
            result.append(None)
            continue
        if item[0] == "at":
            at = number(item[1])
            _check_index(at, shape[axis], axis)
            result.append(at % shape[axis])
        else:
            start, stop, step = (number(part) for part in item[1:])
            if step == 0:
                raise ArgumentValueError("the step of a slice must not be zero.")
            result.append(slice(start, stop, step))
        axis += 1
    return tuple(result)


@tensor_subscript.gpu_new_samples
@on_groups(outputs=0)
def _(x: torch.Tensor, *indices: torch.Tensor, items: Any) -> Any:
    """Index all samples at once if their indices are equal, otherwise one by one."""
    values = [index.tolist() for index in indices]
    shape = tuple(x.shape[1:])
    if tuple(items) == (("at", ("node", 0)),):  # row lookup in a table: all samples at once
        for sample, row in enumerate(values[0]):
            if not -shape[0] <= row < shape[0]:
                raise IndexingError(f"index {row} is out of range for axis 0 of extent {shape[0]}.", sample=sample)
        return x[range(len(x)), values[0]]
    if all(len(set(column)) <= 1 for column in values):
        return _take(x, (slice(None), *_python_index(items, shape, [column[0] for column in values])))
    results = []
    for sample in range(len(x)):
        try:
            index = _python_index(items, shape, [column[sample] for column in values])
        except (IndexingError, ArgumentValueError) as error:
            error.sample = sample
            raise
        results.append(_take(x[sample], index))
    return results


def _take(x: torch.Tensor, index: tuple[Any, ...]) -> torch.Tensor:
    """Index a tensor; torch does not support negative steps, so those axes use index_select first."""
    axis = 0
    result: list[Any] = []
    for item in index:
        if isinstance(item, slice) and item.step is not None and item.step < 0:
            order = range(*item.indices(x.shape[axis]))
            x = x.index_select(axis, uploaded(list(order), x.device, np.int64))
            result.append(slice(None))
        else:
            result.append(item)
        axis += item is not None
    return x[tuple(result)]


def _limited(index: np.ndarray) -> np.ndarray:
    """Return indices as int64. Large ones are limited, so that adding an extent does not overflow."""
    wide = np.minimum(index, np.uint64(_FAR)) if index.dtype == np.uint64 else index
    return np.clip(wide.astype(np.int64), -_FAR, _FAR)


def _one_of(is_first: bool, first: Any, second: Any) -> Any:
    """``np.where`` for a single condition."""
    return first if is_first else second


def _selected(x: Samples, *indices: np.ndarray, items: Any) -> Samples:
    values = [_limited(index) for index in indices]

    def number(value: Any, default: Any = None) -> Any:
        if isinstance(value, tuple):
            return values[value[1]]
        return default if value is None else max(-_FAR, min(value, _FAR))

    strides = x.steps()
    begin = np.zeros(len(x), np.int64)
    is_wrong = np.zeros(len(x), np.bool_)
    shapes: list[Any] = []
    steps: list[Any] = []
    axis = 0
    for item in _expand(items, x.ndim):
        if item[0] == "newaxis":
            shapes.append(1)
            steps.append(0)
            continue
        extent, stride = x.shapes[:, axis], strides[:, axis]
        axis += 1
        if item[0] == "at":
            at = number(item[1])
            is_wrong |= (at < -extent) | (at >= extent)
            begin += (at + extent * (at < 0)) * stride
            continue
        step = number(item[3], 1)
        is_wrong |= step == 0
        is_back, choose = step < 0, np.where if is_array(step) else _one_of
        lowest, highest = choose(is_back, -1, 0), choose(is_back, extent - 1, extent)
        start, stop = (
            default if part is None else np.minimum(np.maximum(part + extent * (part < 0), lowest), highest)
            for part, default in (
                (number(item[1]), choose(is_back, highest, lowest)),
                (number(item[2]), choose(is_back, lowest, highest)),
            )
        )
        size = choose(is_back, start - stop, stop - start)
        shapes.append(np.maximum(size + abs(step) - 1, 0) // np.maximum(abs(step), 1))
        steps.append(step * stride)
        begin += start * stride
    if is_wrong.any():
        sample = int(is_wrong.argmax())
        try:
            _python_index(items, tuple(x.shapes[sample].tolist()), [int(index[sample]) for index in indices])
        except (IndexingError, ArgumentValueError) as error:
            error.sample = sample
            raise
    selected = np.empty((2, len(x), len(shapes)), np.int64)
    for place, columns in enumerate(zip(shapes, steps, strict=True)):
        selected[0, :, place], selected[1, :, place] = columns
    return Samples(x.addresses + begin * x.dtype.itemsize, selected[0], x.dtype, x, selected[1])


@tensor_subscript.cpu_selection(_selected)
def _(x: np.ndarray, *, items: Any) -> Any:
    return np.asarray(x[(slice(None), *_python_index(items, x.shape[1:], []))])
