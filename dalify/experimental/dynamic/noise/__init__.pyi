"""Operators as `dynamic.noise`. Made by `python -m docs.dynamic_stubs` from the operators' files, for editors."""

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

def gaussian(
    x: _Input,
    /,
    *,
    mean: float | _Computed | None = 0.0,
    stddev: float | _Computed | None = 1.0,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Add normally distributed noise to every element, independently of the others.

    noisy = fn.noise.gaussian(images, stddev=fn.random.uniform(range=(0, 20)))
    """
    ...

def salt_and_pepper(
    x: _Input,
    /,
    *,
    pepper_val: float | _Computed | None = None,
    per_channel: _builtins.bool | None = False,
    prob: float | _Computed | None = 0.05,
    salt_val: float | _Computed | None = None,
    salt_vs_pepper: float | _Computed | None = 0.5,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Replace some pixels by a low value ("pepper") or a high one ("salt").

    spotted = fn.noise.salt_and_pepper(images, prob=0.01)
    """
    ...

def shot(
    x: _Input,
    /,
    *,
    factor: float | _Computed | None = 20.0,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Draw every element from a Poisson distribution around its value: `poisson(max(0, x / factor)) * factor`.

    grainy = fn.noise.shot(images, factor=10.0)
    """
    ...
