"""``NumbaFunction`` under its earlier import path."""

from dalify.plugin.numba.function import NumbaFunction

__all__ = ["NumbaFunction"]
