"""The mark on functions that are run as they are. Apart from the rewriter, which takes long to load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

__all__ = ["MARK", "do_not_convert"]

_Callable = TypeVar("_Callable", bound=Callable[..., Any])

MARK = "__dalify_do_not_convert__"


@overload
def do_not_convert(func: _Callable) -> _Callable: ...
@overload
def do_not_convert(func: None = None) -> Callable[[_Callable], _Callable]: ...
def do_not_convert(func: Any = None) -> Any:
    """Mark a function as one that is run as it is, conditions and all.

    Needed where a function that the pipeline definition calls works on Python values in a way that rewriting would
    disturb, for instance because it inspects its own code.

    Args:
        func: a function or any other callable that takes attributes; without it, a decorator is returned.

    Returns:
        the function itself.
    """
    if func is None:
        return do_not_convert
    setattr(func, MARK, True)
    return func
