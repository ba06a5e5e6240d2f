"""Classes that are not ``collections.abc.Iterable`` although they have ``__iter__``.

Programs distinguish one output from several by ``isinstance(value, Iterable)``. The classes need ``__iter__`` to raise
an error; without it, Python would iterate endlessly with ``__getitem__``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class NotIterable(type):
    """Metaclass of such classes: ``collections.abc`` looks for the method in the dictionary of the class."""

    @property
    def __dict__(cls) -> Mapping[str, Any]:  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleVariableOverride]
        """The attributes of the class except ``__iter__``."""
        members = type.__dict__["__dict__"].__get__(cls)
        return {name: member for name, member in members.items() if name != "__iter__"}
