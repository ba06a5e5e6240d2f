"""The functions of the numba plugin; all of them are experimental in DALI."""

from dalify.plugin.numba.fn import experimental

__all__ = ["experimental"]
