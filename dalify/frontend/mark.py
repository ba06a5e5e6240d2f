"""The mark on functions that are run as they are. Apart from the rewriter, which takes long to load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["MARK", "do_not_convert"]

_Callable = TypeVar("_Callable", bound=Callable[..., Any])

MARK = "__dalify_do_not_convert__"


def do_not_convert(function: _Callable) -> _Callable:
    """Mark a function as one that is run as it is, conditions and all.

    Needed where a function that the pipeline definition calls works on Python values in a way that rewriting would
    disturb, for instance because it inspects its own code.

    Args:
        function: a function or any other callable that takes attributes.

    Returns:
        the function itself.
    """
    setattr(function, MARK, True)
    return function
