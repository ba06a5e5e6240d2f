"""Operators as `ops.experimental.inputs`. Made by `python -m docs.stubs` from the operators' files, for editors and type checkers."""

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

class Video:
    """Take videos that are fed with `Pipeline.feed_input`, one at a time, and give their frames sequence by
    sequence.

    clips = fn.experimental.inputs.video(name="film", sequence_length=16)
    pipe.feed_input("film", [np.fromfile("film.mp4", np.uint8)])
    """

    def __init__(
        self,
        *,
        sequence_length: int,
        affine: bool | None = True,
        blocking: bool | None = False,
        last_sequence_policy: str | None = "partial",
        no_copy: bool | None = False,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...
