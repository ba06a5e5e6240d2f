"""Classes whose objects are no ``collections.abc.Iterable`` although they have ``__iter__``.

Programs tell one output from several by ``isinstance(value, Iterable)``. The classes need ``__iter__`` all the same: to
explain why they cannot be iterated over, or Python would ask for element after element without end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["NotIterable"]


class NotIterable(type):
    """Metaclass of such classes: ``collections.abc`` looks for the method in the dictionary of the class."""

    @property
    def __dict__(cls) -> Mapping[str, Any]:  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleVariableOverride]
        """What the class defines, but for ``__iter__``."""
        members = type.__dict__["__dict__"].__get__(cls)
        return {name: member for name, member in members.items() if name != "__iter__"}
