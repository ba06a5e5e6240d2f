"""Operators as `eager.io.file`. Made by `python -m docs.stubs` from the operators' files, for editors."""

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

def read(
    filepaths: _Input,
    /,
    *,
    allow_outside_root: bool | None = False,
    dont_use_mmap: bool | None = False,
    use_o_direct: bool | None = False,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Read the contents of files whose paths come as data, for instance from `fn.external_source`.

    contents = fn.io.file.read(paths)
    """
    ...
