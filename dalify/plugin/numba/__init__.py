"""User functions compiled by numba as operators: ``dalify.plugin.numba.fn.experimental.numba_function``."""

from dalify.plugin.numba import fn

__all__ = ["fn"]
