"""Compiled functions shared by operators: numba or libraries that release the GIL on the CPU, torch on the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalify.base.optional import imported_at_first_use

if TYPE_CHECKING:
    from dalify.kernels.arrays.strided import copy_strided
    from dalify.kernels.arrays.windows_torch import window_samples_torch

__all__ = ["copy_strided", "window_samples_torch"]

# They import numba.
_MODULES = {"copy_strided": "arrays.strided", "window_samples_torch": "arrays.windows_torch"}
__getattr__ = imported_at_first_use(__name__, _MODULES)
