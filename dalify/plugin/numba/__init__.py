"""User functions compiled by Numba as operators: ``fn.numba_function`` and ``NumbaFunction``."""

from dalify.plugin.numba import experimental, fn
from dalify.plugin.numba.function import NumbaFunction

__all__ = ["NumbaFunction", "experimental", "fn"]
