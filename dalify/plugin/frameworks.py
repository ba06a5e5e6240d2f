"""What the plugins of optional frameworks share: loading the package, and handing over memory.

Alone because all of them say in the same words what to install.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.optional import LazyModule, require
from dalify.data.dtypes import is_bfloat16
from dalify.data.exchange import torch_view
from dalify.data.pool import pageable

__all__ = ["by_dlpack", "framework"]


def framework(package: str, plugin: str = "", install: str = "") -> Any:
    """Import a package and return the module.

    Args:
        package: import name.
        plugin: that needs it, below ``dalify.plugin``; the import name where empty.
        install: what to install; dalify's extra with the import name where empty.

    Raises:
        MissingPackageError: it is not installed.
    """
    return require(LazyModule(package, f"dalify.plugin.{plugin or package}", install or f"dalify[{package}]"))


def by_dlpack(array: Any, aligned: int = 1) -> Any:
    """Return what another framework can take by DLPack: of the same memory where it may have it, else a copy.

    Args:
        array: of NumPy, or of torch on a device, which is returned as it is.
        aligned: bytes that the address must be a multiple of.
    """
    if not isinstance(array, np.ndarray):
        return array
    if not array.flags.writeable or not array.flags.c_contiguous or array.ctypes.data % aligned:
        copy = pageable(array.nbytes).view(array.dtype).reshape(array.shape)
        copy[...] = array
        array = copy
    return torch_view(array) if is_bfloat16(array.dtype) else array  # DLPack knows bfloat16, NumPy does not
