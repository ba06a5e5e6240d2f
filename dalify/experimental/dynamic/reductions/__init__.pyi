"""Operators as `dynamic.reductions`. Made by `python -m docs.dynamic_stubs` from the operators' files, for editors."""

import builtins as _builtins
from collections.abc import Sequence as _Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dalify import types
from dalify.experimental.dynamic.batch import Batch as _Batch
from dalify.experimental.dynamic.devices import Device as _Device
from dalify.experimental.dynamic.dtypes import DType as _DynamicDType
from dalify.experimental.dynamic.reader import Reader as _Reader
from dalify.experimental.dynamic.rng import RNG as _RNG
from dalify.experimental.dynamic.tensor import Tensor as _Tensor

_T = TypeVar("_T")
_Many: TypeAlias = _T | _Sequence[_T] | _Sequence[_Sequence[_T]] | np.ndarray[Any, Any]
_Input: TypeAlias = Any
_Computed: TypeAlias = _Tensor | _Batch | np.ndarray[Any, Any] | np.generic
_DType: TypeAlias = _DynamicDType | types.DALIDataType | np.dtype[Any] | type[Any]

def max(
    x: _Input,
    /,
    *,
    axes: _Many[int] | None = None,
    axis_names: str | None = None,
    keep_dims: _builtins.bool | None = False,
    device: str | _Device | None = None,
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
    keep_dims: _builtins.bool | None = False,
    device: str | _Device | None = None,
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
    keep_dims: _builtins.bool | None = False,
    device: str | _Device | None = None,
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
    keep_dims: _builtins.bool | None = False,
    device: str | _Device | None = None,
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
    keep_dims: _builtins.bool | None = False,
    device: str | _Device | None = None,
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
    keep_dims: _builtins.bool | None = False,
    device: str | _Device | None = None,
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
    keep_dims: _builtins.bool | None = False,
    device: str | _Device | None = None,
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
    keep_dims: _builtins.bool | None = False,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Average squared deviations from a given mean along axes.

    spread = fn.reductions.variance(images, fn.reductions.mean(images))
    """
    ...
