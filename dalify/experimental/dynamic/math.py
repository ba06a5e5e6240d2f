"""Element-wise functions of tensors, batches and numbers: ``ndd.math.sqrt(x)``.

Operands follow the rules of arithmetic: Python integers are ``int32``, Python floats ``float32``; extents are
broadcast. Functions that are not defined for integers return floating-point numbers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec

from dalify import math
from dalify.experimental.dynamic.arithmetic import function_of

__all__: list[str] = []
__all__ += math.__all__


_P = ParamSpec("_P")


def _dynamic(function: Callable[_P, object]) -> Callable[_P, Any]:
    """Return the function of ``dalify.math`` for tensors, batches and numbers, with its signature and documentation."""
    name = function.__name__
    signature = inspect.signature(function).replace(return_annotation=Any)

    @functools.wraps(function)
    def computed(*operands: _P.args, **named: _P.kwargs) -> Any:
        try:
            bound = signature.bind(*operands, **named)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        return function_of(name, *bound.args)

    computed.__module__ = __name__
    computed.__dict__["__signature__"] = signature
    return computed


abs = _dynamic(math.abs)
fabs = _dynamic(math.fabs)
sqrt = _dynamic(math.sqrt)
rsqrt = _dynamic(math.rsqrt)
cbrt = _dynamic(math.cbrt)
exp = _dynamic(math.exp)
log = _dynamic(math.log)
log2 = _dynamic(math.log2)
log10 = _dynamic(math.log10)
floor = _dynamic(math.floor)
ceil = _dynamic(math.ceil)
sin = _dynamic(math.sin)
cos = _dynamic(math.cos)
tan = _dynamic(math.tan)
asin = _dynamic(math.asin)
acos = _dynamic(math.acos)
atan = _dynamic(math.atan)
sinh = _dynamic(math.sinh)
cosh = _dynamic(math.cosh)
tanh = _dynamic(math.tanh)
asinh = _dynamic(math.asinh)
acosh = _dynamic(math.acosh)
atanh = _dynamic(math.atanh)
pow = _dynamic(math.pow)
fpow = _dynamic(math.fpow)
min = _dynamic(math.min)
max = _dynamic(math.max)
atan2 = _dynamic(math.atan2)
clamp = _dynamic(math.clamp)
