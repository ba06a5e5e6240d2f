"""The class under the import path that it had while it was experimental."""

from dalify.plugin.numba.function import NumbaFunction

__all__ = ["NumbaFunction"]
