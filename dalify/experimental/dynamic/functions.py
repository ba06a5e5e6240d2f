"""Functions that create tensors and batches: ``ndd.tensor``, ``ndd.as_batch`` etc.

In a module of their own, because a tensor can be created from a batch and vice versa.
"""

from __future__ import annotations

from typing import Any

from dalify.experimental.dynamic.batch import Batch
from dalify.experimental.dynamic.dtypes import install_maker
from dalify.experimental.dynamic.tensor import Tensor

__all__ = ["as_batch", "as_tensor", "batch", "tensor"]


def tensor(data: Any, dtype: Any = None, device: Any = None, layout: str | None = None, pad: bool = False) -> Tensor:
    """Return a tensor with a copy of some data.

    Args:
        data: an array, a tensor, a number, nested lists of numbers, or bytes; a batch becomes one tensor.
        dtype: element type; that of the data where it is not said. Python's integers are ``int32``, floats ``float32``.
        device: where it is to lie.
        layout: letters of the dimensions.
        pad: bring the samples of a batch to one shape, with zeros at the end.

    Raises:
        ShapeError: a batch of samples of different shapes, without ``pad``.
        LayoutError: not one letter for each dimension.
    """
    return Tensor(_padded(data, pad), dtype, device, layout, copy=True)


def as_tensor(data: Any, dtype: Any = None, device: Any = None, layout: str | None = None, pad: bool = False) -> Tensor:
    """Return a tensor of some data, in the same memory where that is possible. Arguments are those of ``tensor``."""
    return Tensor(_padded(data, pad), dtype, device, layout)


def _padded(data: Any, pad: bool) -> Any:
    return Tensor.holding(data._joined(pad)) if isinstance(data, Batch) else data


def batch(tensors: Any, dtype: Any = None, device: Any = None, layout: str | None = None) -> Batch:
    """Return a batch with a copy of some samples.

    Args:
        tensors: a list of what ``tensor`` takes, a batch, or an array whose first axis counts the samples.
        dtype: element type; that of the first sample where it is not said. An empty list needs it.
        device: where it is to lie.
        layout: letters of the dimensions of a sample.

    Raises:
        BatchSizeError: an empty list without ``dtype``.
        ShapeError: samples of different numbers of dimensions.
        LayoutError: not one letter for each dimension.
    """
    return Batch(tensors, dtype, device, layout, copy=True)


def as_batch(tensors: Any, dtype: Any = None, device: Any = None, layout: str | None = None) -> Batch:
    """Return a batch of some samples, in the same memory where that is possible. Arguments are those of ``batch``."""
    if isinstance(tensors, Batch) and dtype is None and device is None and layout is None:
        return tensors
    return Batch(tensors, dtype, device, layout)


install_maker(tensor)
