"""The functions of the numba plugin."""

from dalify.plugin.numba.fn import experimental
from dalify.plugin.numba.function import numba_function

__all__ = ["experimental", "numba_function"]
