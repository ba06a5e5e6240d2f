"""``dalify.backend`` under the other import path of DALI's compiled module."""

from typing import Any

from dalify import backend
from dalify.backend import *  # noqa: F403 -- re-export everything

__all__ = []
__all__ += backend.__all__


def __getattr__(name: str) -> Any:
    return getattr(backend, name)
