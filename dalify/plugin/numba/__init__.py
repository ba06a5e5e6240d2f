"""User functions compiled by numba as operators: ``dalify.plugin.numba.fn.numba_function`` and its class."""

from dalify.plugin.numba import experimental, fn
from dalify.plugin.numba.function import NumbaFunction

__all__ = ["NumbaFunction", "experimental", "fn"]
