"""Numbers of outputs that the arguments determine, for ``outputs`` of a declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dalify.base.errors import NoOutputsError

__all__ = ["one_per_entry"]


def one_per_entry(argument: str, example: str) -> Callable[[Mapping[str, Any]], int]:
    """Return the function of the arguments for an operator with one output per entry of a list.

    It raises NoOutputsError if the list is empty.

    Args:
        argument: name of the list.
        example: a value, for the error.
    """

    def count(arguments: Mapping[str, Any]) -> int:
        if not arguments[argument]:
            raise NoOutputsError(f"{argument} must not be empty.", hint=f"For example {argument}={example}.")
        return len(arguments[argument])

    return count
