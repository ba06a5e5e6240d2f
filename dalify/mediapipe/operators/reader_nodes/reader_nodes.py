"""Base classes of users' readers: ``fn.MediaExtReaderOp``.

Alone because programs import them from this path. A reader needs ``__iter__``, ``__next__`` and ``__len__``; the rest
has defaults.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from dalify.mediapipe.media_types import readerOutType

__all__ = ["media_ext_reader_op_impl", "media_ext_reader_op_tensor_info"]


@dataclass(frozen=True)
class media_ext_reader_op_tensor_info:  # noqa: N801 -- the name that programs import
    """Type and extents of one result.

    Attributes:
        dtype: element type; ``dtype.NDT`` for the list of files.
        shape: extents, fastest dimension first, the batch last.
        layout: letters of the dimensions in the same order.
    """

    dtype: str
    shape: Any
    layout: str = ""


class media_ext_reader_op_impl(ABC):  # noqa: N801
    """A reader of the user's, one batch after the other.

    Args:
        params: "priv_params", "seed", "num_outputs".
        fw_params: with `batch_size`; readers whose constructor takes one argument do without.
    """

    def __init__(self, params: dict[str, Any], fw_params: Any = None) -> None:
        self.params = params

    @abstractmethod
    def __iter__(self) -> Any:
        """Begin an epoch."""

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
        """Return the path of the largest file, or None: it is not needed."""
        return None

    def gen_output_info(self) -> Any:
        """Return a ``media_ext_reader_op_tensor_info`` for each result, or None: found out from the data."""
        return None
