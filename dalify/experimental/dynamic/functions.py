"""Functions that create tensors and batches: ``ndd.tensor``, ``ndd.as_batch``, ``ndd.imread`` etc.

They are in a separate module, because a tensor can be created from a batch and vice versa.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dalify.experimental.dynamic.batch import Batch
from dalify.experimental.dynamic.calls import apply
from dalify.experimental.dynamic.dtypes import register_constructor
from dalify.experimental.dynamic.tensor import Tensor


def tensor(data: Any, dtype: Any = None, device: Any = None, layout: str | None = None, pad: bool = False) -> Tensor:
    """Return a tensor with a copy of some data.

    Args:
        data: an array, a tensor, a number, nested lists of numbers, or bytes; a batch becomes one tensor.
        dtype: element type; by default the type of the data. Python's integers are ``int32``, floats ``float32``.
        device: device of the tensor.
        layout: letters of the dimensions.
        pad: pad the samples of a batch to one shape, with zeros at the end.

    Raises:
        ShapeError: samples of a batch have different shapes, without ``pad``.
        LayoutError: the layout does not have one letter per dimension.
    """
    return Tensor(_padded(data, pad), dtype, device, layout, copy=True)


def as_tensor(data: Any, dtype: Any = None, device: Any = None, layout: str | None = None, pad: bool = False) -> Tensor:
    """Return a tensor that shares the memory of the data if possible. See ``tensor`` for the arguments."""
    return Tensor(_padded(data, pad), dtype, device, layout)


def _padded(data: Any, pad: bool) -> Any:
    return Tensor.from_data(data._joined(pad)) if isinstance(data, Batch) else data


def batch(tensors: Any, dtype: Any = None, device: Any = None, layout: str | None = None) -> Batch:
    """Return a batch with a copy of some samples.

    Args:
        tensors: a list of data for tensors, a batch, or an array whose first axis is the samples.
        dtype: element type; by default the type of the first sample. Required for an empty list.
        device: device of the batch.
        layout: letters of the dimensions of a sample.

    Raises:
        BatchSizeError: the list is empty, without ``dtype``.
        ShapeError: samples have different numbers of dimensions.
        LayoutError: the layout does not have one letter per dimension.
    """
    return Batch(tensors, dtype, device, layout, copy=True)


def as_batch(tensors: Any, dtype: Any = None, device: Any = None, layout: str | None = None) -> Batch:
    """Return a batch that shares the memory of the samples if possible. See ``batch`` for the arguments."""
    if isinstance(tensors, Batch) and dtype is None and device is None and layout is None:
        return tensors
    return Batch(tensors, dtype, device, layout)


def imread(filepaths: Any, /, *, device: Any = "cpu", **arguments: Any) -> Tensor | Batch:
    """Return the image of a file, or a batch of the images of several files.

    Args:
        filepaths: a path, a list of paths, or their bytes in a tensor or batch.
        device: device of the images.
        arguments: arguments of ``fn.decoders.image``.

    Raises:
        DecodeError: a file is not a decodable image.
    """
    if isinstance(filepaths, (list, tuple)):
        filepaths = Batch([_path(item) for item in filepaths], dtype=None)
    elif isinstance(filepaths, (str, os.PathLike)):
        filepaths = _path(filepaths)
    return apply("decoders.image", apply("io.file.read", filepaths), device=device, **arguments)


def _path(item: Any) -> Any:
    if not isinstance(item, (str, os.PathLike)):
        return item
    return np.frombuffer(os.fsencode(item), np.uint8)


register_constructor(tensor)
