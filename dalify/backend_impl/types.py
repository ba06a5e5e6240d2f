"""``dalify.types`` under the import path of DALI's compiled module."""

from dalify import types
from dalify.types import *  # noqa: F403 -- all of it, under another name

__all__ = []
__all__ += types.__all__
