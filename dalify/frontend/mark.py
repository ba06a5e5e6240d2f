"""``do_not_convert``, in a module that does not import the rewriter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

_Callable = TypeVar("_Callable", bound=Callable[..., Any])

MARK = "__dalify_do_not_convert__"


@overload
def do_not_convert(func: _Callable) -> _Callable: ...
@overload
def do_not_convert(func: None = None) -> Callable[[_Callable], _Callable]: ...
def do_not_convert(func: Any = None) -> Any:
    """Mark a function so that its conditions are not converted, for instance because it inspects its own code.

    Args:
        func: a function or another callable with attributes; if omitted, a decorator is returned.

    Returns:
        the function itself.
    """
    if func is None:
        return do_not_convert
    setattr(func, MARK, True)
    return func
