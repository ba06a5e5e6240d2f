"""Operators as `eager.noise`. Made by `python -m docs.stubs` from the operators' files, for editors."""

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

def gaussian(
    x: _Input,
    /,
    *,
    mean: float | _Computed | None = 0.0,
    stddev: float | _Computed | None = 1.0,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
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
    per_channel: bool | None = False,
    prob: float | _Computed | None = 0.05,
    salt_val: float | _Computed | None = None,
    salt_vs_pepper: float | _Computed | None = 0.5,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
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
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Draw every element from a Poisson distribution around its value: `poisson(max(0, x / factor)) * factor`.

    grainy = fn.noise.shot(images, factor=10.0)
    """
    ...
