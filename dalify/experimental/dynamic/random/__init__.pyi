"""Operators as `dynamic.random`. Made by `python -m docs.dynamic_stubs` from the operators' files, for editors."""

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

from dalify.experimental.dynamic.rng import RNG as RNG
from dalify.experimental.dynamic.rng import get_default_rng as get_default_rng
from dalify.experimental.dynamic.rng import set_seed as set_seed

def beta(
    shape_like: _Input | None = None,
    /,
    *,
    alpha: float | _Computed | None = 1.0,
    beta: float | _Computed | None = 1.0,
    dtype: _DType | None = None,
    shape: _Many[int] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Draw numbers in [0, 1] from a beta distribution.

    share = fn.random.beta(alpha=0.2, beta=0.2)  # of two mixed images
    """
    ...

def choice(
    a: _Input,
    shape_like: _Input | None = None,
    /,
    *,
    p: _Many[float] | _Computed | None = None,
    shape: _Many[int] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Choose elements, with repetition.

    angle = fn.random.choice([0, 90, 180, 270])
    """
    ...

def coin_flip(
    shape_like: _Input | None = None,
    /,
    *,
    dtype: _DType | None = None,
    probability: float | _Computed | None = 0.5,
    shape: _Many[int] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Draw 1 with a probability, otherwise 0.

    images = fn.flip(images, horizontal=fn.random.coin_flip())
    """
    ...

def normal(
    shape_like: _Input | None = None,
    /,
    *,
    dtype: _DType | None = None,
    mean: float | _Computed | None = 0.0,
    shape: _Many[int] | _Computed | None = None,
    stddev: float | _Computed | None = 1.0,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Draw numbers from a normal distribution.

    jitter = fn.random.normal(stddev=0.1, shape=[3])
    """
    ...

def uniform(
    shape_like: _Input | None = None,
    /,
    *,
    dtype: _DType | None = None,
    range: _Many[float] | _Computed | None = ...,
    shape: _Many[int] | _Computed | None = None,
    values: _Many[float] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Draw numbers from a range, or from a list of values, each equally likely.

    angle = fn.random.uniform(range=(-15, 15))
    """
    ...
