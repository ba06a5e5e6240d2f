"""Operators as `eager.transforms`. Made by `python -m docs.stubs` from the operators' files, for editors."""

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

def combine(
    input_0: _Input,
    input_1: _Input,
    /,
    *inputs: _Input,
    reverse_order: bool | None = False,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
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
    absolute: bool | None = False,
    from_end: _Many[float] | _Computed | None = ...,
    from_start: _Many[float] | _Computed | None = ...,
    reverse_order: bool | None = False,
    to_end: _Many[float] | _Computed | None = ...,
    to_start: _Many[float] | _Computed | None = ...,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
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
    reverse_order: bool | None = False,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
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
    reverse_order: bool | None = False,
    scale: _Many[float] | _Computed,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
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
    reverse_order: bool | None = False,
    shear: _Many[float] | _Computed | None = None,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
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
    reverse_order: bool | None = False,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Make the transform that moves points.

    move = fn.transforms.translation(offset=[10, -5])
    """
    ...
