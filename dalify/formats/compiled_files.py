"""Files within compiled loops: the few functions of the C library that reading takes.

Alone because they are declared once, for all loops. They exist where ``positions.HAS_POSITIONS`` says so.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numba import types

from dalify.base.compiling import njit

__all__ = ["close_file", "copy_memory", "file_size", "open_file", "read_part"]

_SEEK_END = os.SEEK_END
_lseek: Any = types.ExternalFunction("lseek", types.int64(types.int32, types.int64, types.int32))
_pread: Any = types.ExternalFunction("pread", types.int64(types.int32, types.uintp, types.uintp, types.int64))

# From the address of a path that ends with a zero, and flags, to a descriptor, below zero for none.
open_file: Any = types.ExternalFunction("open", types.int32(types.uintp, types.int32))
close_file: Any = types.ExternalFunction("close", types.int32(types.int32))
# To an address, from an address, a number of bytes.
copy_memory: Any = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))


@njit(nogil=True, cache=True)
def file_size(descriptor: int) -> int:
    """Return the number of bytes of a file; what is none may say anything."""
    return _lseek(descriptor, 0, _SEEK_END)


@njit(nogil=True, cache=True)
def read_part(descriptor: int, offset: int, size: int, address: int) -> bool:
    """Read a part of a file to an address; False at an error or early end."""
    done = np.int64(0)
    while done < size:
        count = _pread(descriptor, np.uintp(address + done), np.uintp(size - done), offset + done)
        if count <= 0:
            return False
        done += count
    return True
