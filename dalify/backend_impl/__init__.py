"""``dalify.backend`` under the other import path of DALI's compiled part."""

from typing import Any

from dalify import backend
from dalify.backend import *  # noqa: F403 -- all of it, under another name

__all__ = []
__all__ += backend.__all__


def __getattr__(name: str) -> Any:
    return getattr(backend, name)
