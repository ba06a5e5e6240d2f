"""Operators as `fn.reductions`. Made by `python -m docs.stubs` from the operators' files, for editors and type checkers."""

from collections.abc import Callable as _Callable, Sequence as _Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from typing_extensions import deprecated

from dalify import types
from dalify.graph import DataNode

_T = TypeVar("_T")
_Many: TypeAlias = _T | _Sequence[_T] | _Sequence[_Sequence[_T]] | np.ndarray[Any, Any]
_Input: TypeAlias = DataNode | _Sequence[DataNode] | npt.ArrayLike
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
) -> DataNode:
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
) -> DataNode:
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
) -> DataNode:
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
) -> DataNode:
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
) -> DataNode:
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
) -> DataNode:
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
) -> DataNode:
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
) -> DataNode:
    """Average squared deviations from a given mean along axes.

    spread = fn.reductions.variance(images, fn.reductions.mean(images))
    """
    ...
