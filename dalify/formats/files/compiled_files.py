"""Functions of the C library for reading files in compiled loops; available if ``positions.HAS_PREAD`` is True."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numba import types

from dalify.base.compiling import njit

_SEEK_END = os.SEEK_END
_lseek: Any = types.ExternalFunction("lseek", types.int64(types.int32, types.int64, types.int32))
_pread: Any = types.ExternalFunction("pread", types.int64(types.int32, types.uintp, types.uintp, types.int64))

# (address of a null-terminated path, flags) -> descriptor, negative on error.
open_file: Any = types.ExternalFunction("open", types.int32(types.uintp, types.int32))
close_file: Any = types.ExternalFunction("close", types.int32(types.int32))


@njit(nogil=True, inline="always")
def file_size(descriptor: int) -> int:
    """Return the size of a regular file in bytes."""
    return _lseek(descriptor, 0, _SEEK_END)


@njit(nogil=True, inline="always")
def read_part(descriptor: int, offset: int, size: int, address: int) -> bool:
    """Read a range of a file to an address; return False on an error or early end of file."""
    done = np.int64(0)
    while done < size:
        count = _pread(descriptor, np.uintp(address + done), np.uintp(size - done), offset + done)
        if count <= 0:
            return False
        done += count
    return True
