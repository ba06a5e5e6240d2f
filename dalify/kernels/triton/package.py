"""Imports the package Triton, for the modules with kernels, which are loaded at the first use of a kernel."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

triton: Any = importlib.import_module("triton")
tl: Any = importlib.import_module("triton.language")
if TYPE_CHECKING:
    constexpr = Any
else:
    # Marks the arguments that Triton compiles a kernel for.
    constexpr = tl.constexpr
