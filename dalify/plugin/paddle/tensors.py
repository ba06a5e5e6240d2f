"""Converts outputs of a pipeline to Paddle tensors without a copy, and to Paddle's older tensors of sequences (LoD)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import DTypeError, ShapeError, TargetTypeError
from dalify.base.wording import counted
from dalify.data import BY_NAME, DALIDataType, TensorListCPU, TensorListGPU, array_dtype
from dalify.plugin.collate import arrays_of
from dalify.plugin.frameworks import as_one_tensor, by_dlpack, framework, of_equal_shape

paddle = framework("paddle")

_NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bfloat16")
dtype_map: dict[DALIDataType, Any] = {BY_NAME[name]: getattr(paddle, name) for name in _NAMES}


def to_paddle_type(tensor: Any) -> Any:
    """Return Paddle's element type for a tensor of a pipeline.

    Raises:
        DTypeError: Paddle does not support the dtype.
    """
    return _paddle_type(tensor.dtype)


def as_paddle(array: Any) -> Any:
    """Return a Paddle tensor that shares the memory, or a copy if the array is read-only or not contiguous.

    Raises:
        DTypeError: Paddle does not support the dtype.
    """
    _paddle_type(array_dtype(array))
    return paddle.utils.dlpack.from_dlpack(by_dlpack(array))


def _paddle_type(dtype: DALIDataType) -> Any:
    if dtype not in dtype_map:
        raise DTypeError(
            f"Paddle does not support tensors of {dtype.text}.",
            hint="Convert them in the pipeline, for instance with fn.cast(x, dtype=types.INT32).",
        )
    return dtype_map[dtype]


def feed_ndarray(dali_tensor: Any, ptr: Any, cuda_stream: Any = None) -> Any:
    """Copy a tensor of a pipeline to an address, or into a Paddle tensor.

    Args:
        dali_tensor: the source; all samples of a list.
        ptr: the destination: an integer or a ctypes pointer as for ``copy_to_external``, or a Paddle tensor of equal
            shape and type.
        cuda_stream: see ``copy_to_external``; ignored for a Paddle tensor.

    Returns:
        ``ptr``.

    Raises:
        TargetShapeError: (a Paddle tensor) the shapes differ.
        TargetTypeError: (a Paddle tensor) the element types differ.
    """
    if not isinstance(ptr, paddle.Tensor):
        as_one_tensor(dali_tensor).copy_to_external(ptr, cuda_stream)
        return ptr
    dali_tensor = of_equal_shape(dali_tensor, ptr)
    if ptr.dtype != to_paddle_type(dali_tensor):
        raise TargetTypeError(f"the element types differ: {dali_tensor.dtype.text} cannot be copied into {ptr.dtype}.")
    ptr.copy_(as_paddle(np.asarray(dali_tensor.as_cpu())), False)
    return ptr


def of_sequences(levels: int, name: str, output: TensorListCPU | TensorListGPU, count: int) -> Any:
    """Return a ``DenseTensor`` of sequences: all samples concatenated along their first axes, with their lengths.

    Args:
        levels: levels of detail: 1 for sequences, 2 for sequences of sequences.
        name: name of the output, for errors.
        output: its samples; they may differ in the first ``levels`` axes.
        count: number of samples.

    Raises:
        ShapeError: samples have too few axes, or differ in other axes.
    """
    arrays = arrays_of(output.as_cpu(), count)
    if any(array.ndim < levels for array in arrays) or len({array.shape[levels:] for array in arrays}) > 1:
        shapes = sorted({array.shape for array in arrays})
        raise ShapeError(
            f"the samples of the output {name!r} are not sequences with {levels} levels: they may differ in their "
            f"first {counted(levels, 'axis')}; their shapes are {', '.join(map(str, shapes[:4]))}."
        )
    lengths = [
        [array.shape[level] for array in arrays for _ in range(math.prod(array.shape[:level]))]
        for level in range(levels)
    ]
    values = np.concatenate([array.reshape(-1, *array.shape[levels:]) for array in arrays])
    tensor = paddle.base.core.DenseTensor()
    tensor.set(values, paddle.CPUPlace())
    tensor.set_recursive_sequence_lengths(lengths)
    return tensor


def recursive_length(tensor: Sequence[Any], lod_level: int) -> list[list[int]]:
    """Return the lengths of nested sequences, one list per level, in the form of Paddle's LoD tensors.

    Args:
        tensor: nested lists or arrays.
        lod_level: number of levels.
    """
    lengths: list[list[int]] = []
    items: list[Any] = [tensor]
    for _ in range(lod_level):
        items = [inner for item in items for inner in item]
        lengths.append([len(item) for item in items])
    return lengths


def lod_tensor_clip(lod_tensor: Any, size: int) -> Any:
    """Return a ``DenseTensor`` of the first sequences.

    Args:
        lod_tensor: a Paddle tensor with or without levels.
        size: number of sequences.
    """
    lengths = [np.diff(offsets).tolist() for offsets in lod_tensor.lod()]
    kept: list[list[int]] = []
    rows = size
    for level in lengths:
        kept.append(list(level[:rows]))
        rows = sum(kept[-1])
    clipped = paddle.base.core.DenseTensor()
    clipped.set(np.array(lod_tensor)[:rows], paddle.CPUPlace())
    if kept:
        clipped.set_recursive_sequence_lengths(kept)
    return clipped
