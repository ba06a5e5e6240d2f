"""Conversion of objects of users to the data of tensors and batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dalify.base.errors import (
    ArgumentTypeError,
    BatchSizeError,
    DalifyError,
    IntegerRangeError,
    LayoutError,
    ShapeError,
)
from dalify.base.source_line import SourceLine
from dalify.base.wording import counted
from dalify.data import Array, Batch, DALIDataType, TensorListCPU, TensorListGPU, batch_of, check_layout
from dalify.experimental.dynamic.calls import apply, locate_error, to_value
from dalify.experimental.dynamic.dtypes import type_id
from dalify.experimental.dynamic.tensor_or_batch import TensorOrBatch, on_device


def sample_of(data: Any, dtype: Any) -> tuple[Batch, bool]:
    """Return one sample, and whether its memory belongs to the user.

    Args:
        data: a tensor, array or number, a list of these, or bytes; a batch becomes one tensor.
        dtype: element type of numbers; other data are converted later.

    Raises:
        DalifyError: the value is not data.
        ShapeError: samples of a batch have different shapes.
    """
    if isinstance(data, (TensorListCPU, TensorListGPU)):
        return stacked(batch_of(data)), True
    if isinstance(data, TensorOrBatch):
        return (stacked(data.batch), False) if data.is_batch else (data.batch, data.is_exposed)
    if dtype is not None and isinstance(data, (bool, int, float, list, tuple)) and not _holds_arrays(data):
        wanted = type_id(dtype).numpy
        try:
            return Batch(np.asarray(data, wanted)[None]), False
        except OverflowError:
            raise IntegerRangeError.here(f"{data!r} does not fit {wanted}.", hint="Choose a wider type.") from None
    is_owned = isinstance(data, (bool, int, float, list, tuple, str, bytes, np.generic))
    try:
        return to_value(data).batch, not is_owned
    except IntegerRangeError:
        numbers = np.asarray(data)
        if numbers.min() < 0 or numbers.max() >= 2**32:
            raise
        return Batch(numbers.astype(np.uint32)[None]), False  # as in DALI


def _holds_arrays(data: Any) -> bool:
    return isinstance(data, (list, tuple)) and any(hasattr(item, "__array__") or _holds_arrays(item) for item in data)


def samples_of(tensors: Any, dtype: Any) -> tuple[Batch, bool]:
    """Return the samples of a batch, and whether their memory belongs to the user.

    Args:
        tensors: a batch, a tensor list, a list of data for ``sample_of``, or one array or tensor whose first axis
            is that of the samples.
        dtype: element type of numbers; required for an empty list.

    Raises:
        ArgumentTypeError: the value is a single number.
        BatchSizeError: there are no samples and no element type.
        ShapeError: samples have different numbers of dimensions.
        LayoutError: samples have different layouts.
    """
    if isinstance(tensors, TensorOrBatch) and tensors.is_batch:
        return tensors.batch, tensors.is_exposed
    if isinstance(tensors, (TensorListCPU, TensorListGPU)):
        return batch_of(tensors), True
    is_array = hasattr(tensors, "shape") or hasattr(tensors, "__dlpack__")
    if isinstance(tensors, (bytes, str)) or not (is_array or isinstance(tensors, Iterable)):
        raise ArgumentTypeError.here(f"a batch is a list of samples; got {type(tensors).__name__}.")
    if is_array:
        data, is_exposed = sample_of(tensors, dtype)
        array = data.samples[0]
        if not array.ndim:
            raise ShapeError.here("a single number is not a batch.", hint="Use ndd.batch([x]).")
        return Batch(array, None, data.layout[1:], data.device), is_exposed
    listed: Any = tensors
    found: list[tuple[Batch, bool]] = []
    for item in listed:
        found.append(sample_of(item, found[0][0].dtype if dtype is None and found else dtype))
    return _joined(found, dtype)


def _joined(found: list[tuple[Batch, bool]], dtype: Any) -> tuple[Batch, bool]:
    """Return samples as a batch; all get the type of the first one."""
    if not found:
        if dtype is None:
            raise BatchSizeError.here("an empty batch requires an element type.", hint="Specify dtype=ndd.float32.")
        return Batch(None, [], "", "cpu", None, type_id(dtype)), False
    first = found[0][0]
    samples: list[Array] = []
    for index, (data, _) in enumerate(found):
        if data.ndim != first.ndim:
            raise ShapeError.here(f"sample {index} has {counted(data.ndim, 'dimension')}, sample 0 has {first.ndim}.")
        if data.layout != first.layout:
            raise LayoutError.here(f"sample {index} has the layout {data.layout!r}, sample 0 has {first.layout!r}.")
        if data.device != first.device:
            data = on_device(data, first.device)
        samples.append(_cast(data, first.dtype).samples[0])
    origins = [None if data.origins is None else data.origins[0] for data, _ in found]
    made = Batch(None, samples, first.layout, first.device, origins if any(origins) else None)
    return made, any(is_exposed for _, is_exposed in found)


def stacked(data: Batch) -> Batch:
    """Stack all samples in one, with a dimension N.

    Raises:
        ShapeError: samples have different shapes.
    """
    data.check_uniform(hint="Use pad=True, or convert the samples separately.", line=SourceLine.capture())
    dense = data.stacked() if len(data) else np.empty((0,), data.dtype.numpy)
    return Batch(dense[None], None, f"N{data.layout}" if data.layout or dense.ndim == 1 else "", data.device)


def _cast(data: Batch, wanted: DALIDataType) -> Batch:
    """Convert samples to an element type, rounded and saturated as by ``fn.cast``."""
    if data.dtype == wanted:
        return data
    return apply("cast", TensorOrBatch.class_of(True).from_data(data), dtype=wanted).batch


def constructor_data(
    make: Callable[[Any, Any], tuple[Batch, bool]], given: Any, dtype: Any, where: Any, layout: str | None, copy: bool
) -> tuple[Batch, bool]:
    """Return data for a constructor, and whether their memory belongs to the user.

    Args:
        make: ``sample_of`` or ``samples_of``.
        given: value of the user.
        dtype: element type, or None for the type of the data.
        where: device, or None for the device of the data.
        layout: letters of the dimensions of a sample, or None for the layout of the data.
        copy: whether to copy even if memory could be shared.

    Raises:
        LayoutError: the layout does not have one letter per dimension.
    """
    try:
        before, is_exposed = make(given, dtype)
        data = before
        if dtype is not None:
            data = _cast(data, type_id(dtype))
        if where is not None:
            data = on_device(data, where)
        if data is before and copy:
            if data.dense is None and len(data) > 0 and data.is_uniform:
                data = Batch(data.stacked(), None, data.layout, data.device, data.origins)
            else:
                data = on_device(data, data.device, force_copy=True)
        if layout is not None:
            check_layout(layout, len(layout) if data.ndim is None else data.ndim)
            data = data.with_layout(layout)
    except DalifyError as error:
        locate_error(error, SourceLine.capture())
        raise
    return data, is_exposed and data.dense is before.dense and data.samples is before.samples
