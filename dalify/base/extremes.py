"""Minimum and maximum of two numbers, for compiled functions.

They compile in a quarter of the time of a conditional expression; ``min`` and ``max`` are functions that numba compiles
for each combination of types.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from numba import types

from dalify.base.compiling import intrinsic

_types: Any = types  # numba is not typed


def _smaller_of(typing_context: Any, a: Any, b: Any) -> tuple[Any, Any]:
    return _selected("<", typing_context, a, b)


def _larger_of(typing_context: Any, a: Any, b: Any) -> tuple[Any, Any]:
    return _selected(">", typing_context, a, b)


def _selected(comparison: str, typing_context: Any, a: Any, b: Any) -> tuple[Any, Any]:
    found = typing_context.unify_types(_types.unliteral(a), _types.unliteral(b))
    return found(found, found), partial(_generate, comparison)


def _generate(comparison: str, context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
    is_float = isinstance(signature.return_type, types.Float)
    compare = builder.fcmp_ordered if is_float else builder.icmp_signed
    return builder.select(compare(comparison, *arguments), *arguments)


# `smaller_of(a, b)` is ``a if a < b else b``, and `larger_of(a, b)` is ``a if a > b else b``, so both are `b` if one is
# NaN. For signed integers or floats.
smaller_of: Any = intrinsic(_smaller_of)
larger_of: Any = intrinsic(_larger_of)
