"""The functions of the Numba plugin."""

from dalify.plugin.numba.fn import experimental
from dalify.plugin.numba.function import numba_function

__all__ = ["experimental", "numba_function"]
