"""Base classes of user readers: ``fn.MediaExtReaderOp``.

Programs import them from this path. A reader needs ``__iter__``, ``__next__`` and ``__len__``; other methods have
defaults.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from dalify.mediapipe.media_types import readerOutType


@dataclass(frozen=True)
class media_ext_reader_op_tensor_info:  # noqa: N801 -- the name that programs import
    """Dtype and extents of one result.

    Attributes:
        dtype: dtype; ``dtype.NDT`` for the list of files.
        shape: extents, fastest dimension first, batch last.
        layout: letters of the dimensions in the same order.
    """

    dtype: str
    shape: Any
    layout: str = ""


class media_ext_reader_op_impl(ABC):  # noqa: N801
    """A user-defined reader that returns batches.

    Args:
        params: "priv_params", "seed", "num_outputs".
        fw_params: object with `batch_size`; not passed to readers whose constructor takes one argument.
    """

    def __init__(self, params: dict[str, Any], fw_params: Any = None) -> None:
        self.params = params

    @abstractmethod
    def __iter__(self) -> Any:
        """Start an epoch."""

    @abstractmethod
    def __next__(self) -> Any:
        """Return a batch: a list of paths or of files as uint8 arrays, and arrays ``[N, …]`` for the other results."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of batches of an epoch."""

    def get_media_output_type(self) -> int:
        """Return ``readerOutType.FILE_LIST`` or ``BUFFER_LIST``."""
        return readerOutType.FILE_LIST

    def get_largest_file(self) -> Any:
        """Return the path of the largest file, or None; not used."""
        return None

    def gen_output_info(self) -> Any:
        """Return a ``media_ext_reader_op_tensor_info`` for each result, or None to infer it from the data."""
        return None
