"""Operators as `eager.experimental.decoders`. Made by `python -m docs.stubs` from the operators' files, for editors."""

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

@deprecated("is now called eager.decoders.image")
def image(*inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called eager.decoders.image_crop")
def image_crop(*inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called eager.decoders.image_random_crop")
def image_random_crop(*inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called eager.decoders.image_slice")
def image_slice(*inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called eager.decoders.video")
def video(*inputs: _Input, **arguments: Any) -> Any: ...
