"""Operators as `fn.io`. Made by `python -m docs.stubs` from the operators' files, for editors and type checkers."""

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

from dalify.fn.io import file as file
