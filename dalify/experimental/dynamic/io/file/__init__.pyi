"""Operators as `dynamic.io.file`. Made by `python -m docs.dynamic_stubs` from the operators' files, for editors."""

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

def read(
    filepaths: _Input,
    /,
    *,
    allow_outside_root: _builtins.bool | None = False,
    dont_use_mmap: _builtins.bool | None = False,
    use_o_direct: _builtins.bool | None = False,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Read the contents of files whose paths come as data, for instance from `fn.external_source`.

    contents = fn.io.file.read(paths)
    """
    ...
