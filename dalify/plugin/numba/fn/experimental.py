"""``numba_function`` under the import path that it had while it was experimental."""

from dalify.plugin.numba.function import numba_function

__all__ = ["numba_function"]
