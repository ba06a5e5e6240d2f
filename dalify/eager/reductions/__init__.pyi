"""Operators as `eager.reductions`. Made by `python -m docs.stubs` from the operators' files, for editors."""

from collections.abc import Sequence as _Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from typing_extensions import deprecated

from dalify import types
from dalify.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU

_T = TypeVar("_T")
_Many: TypeAlias = _T | _Sequence[_T] | _Sequence[_Sequence[_T]] | np.ndarray[Any, Any]
_Input: TypeAlias = Any
_Computed: TypeAlias = np.ndarray[Any, Any] | np.generic | TensorCPU | TensorGPU | TensorListCPU | TensorListGPU
_DType: TypeAlias = types.DALIDataType | np.dtype[Any] | type[Any]

def max(
    x: _Input,
    /,
    *,
    axes: _Many[int] | None = None,
    axis_names: str | None = None,
    keep_dims: bool | None = False,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Find the largest values along axes.

    brightest = fn.reductions.max(images)
    """
    ...

def mean(
    x: _Input,
    /,
    *,
    axes: _Many[int] | None = None,
    axis_names: str | None = None,
    dtype: _DType | None = None,
    keep_dims: bool | None = False,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Average along axes.

    level = fn.reductions.mean(images, axis_names="HW")
    """
    ...

def mean_square(
    x: _Input,
    /,
    *,
    axes: _Many[int] | None = None,
    axis_names: str | None = None,
    dtype: _DType | None = None,
    keep_dims: bool | None = False,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Average squares along axes.

    power = fn.reductions.mean_square(audio)
    """
    ...

def min(
    x: _Input,
    /,
    *,
    axes: _Many[int] | None = None,
    axis_names: str | None = None,
    keep_dims: bool | None = False,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Find the smallest values along axes.

    darkest = fn.reductions.min(images)
    """
    ...

def rms(
    x: _Input,
    /,
    *,
    axes: _Many[int] | None = None,
    axis_names: str | None = None,
    dtype: _DType | None = None,
    keep_dims: bool | None = False,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Take the root of the mean of squares along axes.

    loudness = fn.reductions.rms(audio)
    """
    ...

def std_dev(
    x: _Input,
    mean: _Input,
    /,
    *,
    axes: _Many[int] | None = None,
    axis_names: str | None = None,
    ddof: int | None = 0,
    keep_dims: bool | None = False,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Take the root of the average squared deviation from a given mean along axes.

    spread = fn.reductions.std_dev(images, fn.reductions.mean(images))
    """
    ...

def sum(
    x: _Input,
    /,
    *,
    axes: _Many[int] | None = None,
    axis_names: str | None = None,
    dtype: _DType | None = None,
    keep_dims: bool | None = False,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Add up along axes.

    counts = fn.reductions.sum(masks, axis_names="HW")
    """
    ...

def variance(
    x: _Input,
    mean: _Input,
    /,
    *,
    axes: _Many[int] | None = None,
    axis_names: str | None = None,
    ddof: int | None = 0,
    keep_dims: bool | None = False,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Average squared deviations from a given mean along axes.

    spread = fn.reductions.variance(images, fn.reductions.mean(images))
    """
    ...
