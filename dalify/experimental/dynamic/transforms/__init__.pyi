"""Operators as `dynamic.transforms`. Made by `python -m docs.dynamic_stubs` from the operators' files, for editors."""

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

def combine(
    input_0: _Input,
    input_1: _Input,
    /,
    *inputs: _Input,
    reverse_order: _builtins.bool | None = False,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Join affine transforms: the result does what all of them do one after the other.

    both = fn.transforms.combine(
        fn.transforms.scale(scale=[2, 2]), fn.transforms.rotation(angle=30)
    )
    """
    ...

def crop(
    x: _Input | None = None,
    /,
    *,
    absolute: _builtins.bool | None = False,
    from_end: _Many[float] | _Computed | None = ...,
    from_start: _Many[float] | _Computed | None = ...,
    reverse_order: _builtins.bool | None = False,
    to_end: _Many[float] | _Computed | None = ...,
    to_start: _Many[float] | _Computed | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Make the transform that takes one box to another.

    to_crop = fn.transforms.crop(from_start=[0.1, 0.2], from_end=[0.8, 0.6])
    """
    ...

def rotation(
    x: _Input | None = None,
    /,
    *,
    angle: _Many[float] | _Computed,
    axis: _Many[float] | _Computed | None = None,
    center: _Many[float] | _Computed | None = None,
    reverse_order: _builtins.bool | None = False,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Make the transform that rotates points about a center.

    turn = fn.transforms.rotation(angle=30, center=[112, 112])
    """
    ...

def scale(
    x: _Input | None = None,
    /,
    *,
    center: _Many[float] | _Computed | None = None,
    ndim: int | None = None,
    reverse_order: _builtins.bool | None = False,
    scale: _Many[float] | _Computed,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Make the transform that scales points about a center.

    twice = fn.transforms.scale(scale=2, ndim=2)
    """
    ...

def shear(
    x: _Input | None = None,
    /,
    *,
    angles: _Many[float] | _Computed | None = None,
    center: _Many[float] | _Computed | None = None,
    reverse_order: _builtins.bool | None = False,
    shear: _Many[float] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Make the transform that shears points about a center.

    slant = fn.transforms.shear(shear=[0.2, 0])
    """
    ...

def translation(
    x: _Input | None = None,
    /,
    *,
    offset: _Many[float] | _Computed,
    reverse_order: _builtins.bool | None = False,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Make the transform that moves points.

    move = fn.transforms.translation(offset=[10, -5])
    """
    ...
