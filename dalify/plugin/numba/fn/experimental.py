"""``numba_function`` under its earlier import path."""

from dalify.plugin.numba.function import numba_function

__all__ = ["numba_function"]
