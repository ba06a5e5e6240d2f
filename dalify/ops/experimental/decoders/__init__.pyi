"""Operators as `ops.experimental.decoders`. Made by `python -m docs.stubs` from the operators' files, for editors and type checkers."""

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

@deprecated("is now called ops.decoders.Image")
class Image:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.ImageCrop")
class ImageCrop:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.ImageRandomCrop")
class ImageRandomCrop:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.ImageSlice")
class ImageSlice:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.Video")
class Video:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...
