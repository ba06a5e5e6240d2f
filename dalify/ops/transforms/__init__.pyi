"""Operators as `ops.transforms`. Made by `python -m docs.stubs` from the operators' files, for editors and type checkers."""

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

class Combine:
    """Join affine transforms: the result does what all of them do one after the other.

    both = fn.transforms.combine(
        fn.transforms.scale(scale=[2, 2]), fn.transforms.rotation(angle=30)
    )
    """

    def __init__(
        self,
        *,
        reverse_order: bool | None = False,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Crop:
    """Make the transform that takes one box to another.

    to_crop = fn.transforms.crop(from_start=[0.1, 0.2], from_end=[0.8, 0.6])
    """

    def __init__(
        self,
        *,
        absolute: bool | None = False,
        from_end: _Many[float] | DataNode | None = ...,
        from_start: _Many[float] | DataNode | None = ...,
        reverse_order: bool | None = False,
        to_end: _Many[float] | DataNode | None = ...,
        to_start: _Many[float] | DataNode | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Rotation:
    """Make the transform that rotates points about a center.

    turn = fn.transforms.rotation(angle=30, center=[112, 112])
    """

    def __init__(
        self,
        *,
        angle: _Many[float] | DataNode,
        axis: _Many[float] | DataNode | None = None,
        center: _Many[float] | DataNode | None = None,
        reverse_order: bool | None = False,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Scale:
    """Make the transform that scales points about a center.

    twice = fn.transforms.scale(scale=2, ndim=2)
    """

    def __init__(
        self,
        *,
        center: _Many[float] | DataNode | None = None,
        ndim: int | None = None,
        reverse_order: bool | None = False,
        scale: _Many[float] | DataNode,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Shear:
    """Make the transform that shears points about a center.

    slant = fn.transforms.shear(shear=[0.2, 0])
    """

    def __init__(
        self,
        *,
        angles: _Many[float] | DataNode | None = None,
        center: _Many[float] | DataNode | None = None,
        reverse_order: bool | None = False,
        shear: _Many[float] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Translation:
    """Make the transform that moves points.

    move = fn.transforms.translation(offset=[10, -5])
    """

    def __init__(
        self,
        *,
        offset: _Many[float] | DataNode,
        reverse_order: bool | None = False,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...
