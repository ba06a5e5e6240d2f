"""`dalify.kernels.arrays.arithmetic` for torch tensors on any device: same rules, same results.

torch does not support arithmetic on unsigned integers wider than 8 bits. They are computed in int64; the bits of uint64
are reinterpreted as int64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.wide_torch import wide_dtype, widened
from dalify.kernels.arrays.windows_torch import moved_torch

_WIDE_UNSIGNED = ("torch.uint16", "torch.uint32", "torch.uint64")
_SIGN_BIT = -(2**63)
_DIRECT = {"add": "add", "sub": "sub", "mul": "mul", "fdiv": "true_divide"}
_BITS = {"torch.uint64": 64, "torch.uint32": 32, "torch.uint16": 16}
_DIVISIONS = ("div", "mod")


def compute_samples_torch(function: str, out: DeviceSamples, *operands: DeviceSamples) -> None:
    """`compute_torch` for samples on the device: for all elements at once, whatever the shapes of the samples.

    Args:
        function: see `dalify.kernels.arrays.arithmetic.compute`.
        out: output; none is empty.
        operands: samples whose shapes broadcast to the shapes of `out`.

    Raises:
        ArgumentValueError: an integer is divided by zero.
    """
    is_single = [bool((operand.shapes == 1).all()) for operand in operands]
    is_elementwise = all(
        single or np.array_equal(operand.shapes, out.shapes)
        for single, operand in zip(is_single, operands, strict=True)
    )
    # The gaps between samples may contain zeros, which are not divisors.
    is_checked = function in _DIVISIONS and not out.dtype.is_floating_point
    if out.dense is not None or is_checked or not is_elementwise:
        _compute_padded(out, *operands, function=function)
        return
    counts = uploaded(np.diff([*out.offsets, out.block.numel()]), out.device)
    flat = [
        _repeated(operand, counts, out.block.numel())
        if single
        else moved_torch(operand, out.offsets, out.block.numel())
        for single, operand in zip(is_single, operands, strict=True)
    ]
    compute_torch(function, out.block, *flat)


def _repeated(values: DeviceSamples, counts: torch.Tensor, size: int) -> torch.Tensor:
    """Return the single number of each sample, repeated for each element of its result."""
    movable = movable_torch(values.numbers())
    return torch.repeat_interleave(movable, counts, output_size=size).view(values.dtype)


@on_padded
def _compute_padded(out: torch.Tensor, *operands: torch.Tensor, function: str) -> None:
    # Padding repeats the edges, which broadcasts axes of extent 1.
    compute_torch(function, out, *operands)


def compute_torch(function: str, out: torch.Tensor, *operands: torch.Tensor) -> None:
    """Apply a function to every element; see `dalify.kernels.arrays.arithmetic.compute`.

    Raises:
        ArgumentValueError: an integer is divided by zero.
    """
    aligned = [_align(operand, out.dim()) for operand in operands]
    is_special = any(str(operand.dtype) in (*_WIDE_UNSIGNED, "torch.bool") for operand in aligned)
    if function in _DIRECT and not is_special and torch.result_type(aligned[0], aligned[1]) == out.dtype:
        # One pass over the memory: torch converts the operands as it reads them.
        getattr(torch, _DIRECT[function])(aligned[0], aligned[1], out=out)
        return
    if function in _COMPARISONS:
        out.copy_(_compare(function, *aligned))
        return
    target = str(out.dtype)
    if function == "mod" and out.is_floating_point() and len({a.is_floating_point() for a in aligned}) == 2:
        kind = wide_dtype(out.device)  # like C's fmod of an integer and a float
    else:
        kind = torch.int64 if target in _WIDE_UNSIGNED else out.dtype
    values = [operand.to(kind) for operand in aligned]
    if target == "torch.uint64" and function in _UNSIGNED_64:
        result = _UNSIGNED_64[function](*values)
    elif out.is_floating_point() and function in _FLOATS:
        result = _FLOATS[function](*values)
    elif function == "lshift" or function == "rshift":
        result = _shift(function, *values, bits=_BITS.get(target, 8 * out.element_size()))
    else:
        result = _TABLE[function](*values)
    out.copy_(result)


def _align(operand: torch.Tensor, ndim: int) -> torch.Tensor:
    missing = ndim - operand.dim()
    if not missing:
        return operand
    return operand.reshape(operand.shape[:1] + (1,) * missing + operand.shape[1:])


def _unsigned_below(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Compare uint64 bits in int64: flipping the sign bit preserves their order."""
    return (a ^ _SIGN_BIT) < (b ^ _SIGN_BIT)


def _compare(function: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.is_floating_point() or b.is_floating_point():
        kind = b.dtype if not a.is_floating_point() else a.dtype
        if a.is_floating_point() and b.is_floating_point():
            kind = torch.promote_types(a.dtype, b.dtype)
        return _COMPARISONS[function](a.to(kind), b.to(kind))
    unsigned = [str(operand.dtype) == "torch.uint64" for operand in (a, b)]
    a, b = a.to(torch.int64), b.to(torch.int64)
    if any(unsigned):
        # Both as unsigned numbers with a 65th sign bit: a negative int64 is below every uint64.
        below_a = (a < 0) & (not unsigned[0])
        below_b = (b < 0) & (not unsigned[1])
        less = torch.where(below_a == below_b, _unsigned_below(a, b), below_a)
        equal = (a == b) & (below_a == below_b)
        order = torch.where(equal, 0, torch.where(less, -1, 1))
        return _COMPARISONS[function](order, 0)
    return _COMPARISONS[function](a, b)


_COMPARISONS: dict[str, Callable[..., torch.Tensor]] = {
    "eq": lambda a, b: a == b,
    "neq": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "leq": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "geq": lambda a, b: a >= b,
}


def _refuse_zero(divisor: torch.Tensor) -> None:
    zero = (divisor == 0).reshape(len(divisor), -1).any(dim=1)
    if bool(zero.any()):
        raise ArgumentValueError(
            "integer division by zero.",
            hint="Divide floats (the result is then inf or nan), or replace the zeros first.",
            sample=int(zero.nonzero()[0, 0]),
        )


def _divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    _refuse_zero(b)
    return torch.div(a, b, rounding_mode="trunc")


def _remainder(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    _refuse_zero(b)
    return torch.fmod(a, b)


def _divide_unsigned(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Divide uint64 bits: half of the dividend fits into int64; the doubled quotient is too small by at most 1."""
    _refuse_zero(b)
    half = (a >> 1) & (2**63 - 1)
    quotient = torch.div(half, b, rounding_mode="trunc") << 1
    rest = a - quotient * b
    quotient = quotient + (~_unsigned_below(rest, b)).long()
    return torch.where(b < 0, (~_unsigned_below(a, b)).long(), quotient)


def _remainder_unsigned(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a - _divide_unsigned(a, b) * b


def _power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Raise integers to powers by squaring: torch's pow rejects or rounds some of these."""
    base, exponent = a.long(), b.long()
    result = torch.ones_like(base * exponent)
    base = base.expand_as(result)
    rest = exponent.clamp(min=0)
    for _ in range(63 if a.dtype == torch.int64 else 8 * a.element_size()):
        result = torch.where((rest & 1).bool(), result * base, result)
        base = base * base
        rest = rest >> 1
    return result if a.dtype == torch.uint8 else torch.where(exponent < 0, 0, result)


def _power_unsigned(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    high = torch.where(b < 0, b & (2**63 - 1), b)
    result = _power(a, high)
    for _ in range(63):
        a = a * a
    return torch.where(b < 0, result * a, result)  # bit 63 of the exponent, the sign bit of int64


def _shift(function: str, a: torch.Tensor, b: torch.Tensor, bits: int) -> torch.Tensor:
    if a.dtype == torch.bool:
        return a & ~b if function == "rshift" else a.expand(torch.broadcast_shapes(a.shape, b.shape))
    is_inside = (b >= 0) & (b < bits)
    count = torch.where(is_inside, b, 0)
    if function == "lshift":
        return torch.where(is_inside, a << count, 0)
    if bits == 64 and a.dtype == torch.int64:
        return torch.where(is_inside, a >> count, torch.where(a < 0, -1, 0))
    return torch.where(is_inside, a >> count, torch.where(a < 0, -1, 0).to(a.dtype))


def _shift_right_unsigned(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    is_inside = (b >= 0) & (b < 64)
    count = torch.where(is_inside, b, 0)
    # The arithmetic shift replicates the sign bit: clear the replicated bits.
    mask = torch.where(count == 0, -1, (1 << (64 - count).clamp(max=63)) - 1)
    return torch.where(is_inside, (a >> count) & mask, 0)


def _smaller(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.where(a < b, a, b)


def _larger(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.where(a > b, a, b)


def _smaller_unsigned(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.where(_unsigned_below(a, b), a, b)


def _larger_unsigned(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.where(_unsigned_below(b, a), a, b)


def _cube_root(a: torch.Tensor) -> torch.Tensor:
    """Return the cube root, which torch does not provide: a power of the magnitude and one Newton step."""
    wide = widened(a)
    root = wide.abs().pow(1.0 / 3.0)
    step = (root - wide.abs() / (root * root)) / 3.0
    return torch.where((root > 0) & root.isfinite(), root - step, root).copysign(wide).to(a.dtype)


_UNSIGNED_64: dict[str, Callable[..., torch.Tensor]] = {
    "div": _divide_unsigned,
    "mod": _remainder_unsigned,
    "pow": _power_unsigned,
    "rshift": _shift_right_unsigned,
    "min": _smaller_unsigned,
    "max": _larger_unsigned,
    "clamp": lambda value, low, high: _smaller_unsigned(high, _larger_unsigned(low, value)),
    "abs": lambda a: a,
}

_FLOATS: dict[str, Callable[..., torch.Tensor]] = {
    "div": lambda a, b: a / b,
    "mod": lambda a, b: torch.fmod(a, b),
    "pow": lambda a, b: torch.pow(a, b),
}

_TABLE: dict[str, Callable[..., torch.Tensor]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fdiv": lambda a, b: a / b,
    "div": _divide,
    "mod": _remainder,
    "pow": _power,
    "fpow": lambda a, b: torch.pow(a, b),
    "atan2": lambda a, b: torch.atan2(a, b),
    "min": _smaller,
    "max": _larger,
    "clamp": lambda value, low, high: _smaller(high, _larger(low, value)),
    "bitand": lambda a, b: a & b,
    "bitor": lambda a, b: a | b,
    "bitxor": lambda a, b: a ^ b,
    "bitnot": lambda a: ~a,
    "plus": lambda a: a,
    "minus": lambda a: -a,
    "abs": lambda a: a.abs(),
    "fabs": lambda a: a.abs(),
    "sqrt": lambda a: a.sqrt(),
    "rsqrt": lambda a: a.rsqrt(),
    "cbrt": _cube_root,
    "exp": lambda a: a.exp(),
    "log": lambda a: a.log(),
    "log2": lambda a: a.log2(),
    "log10": lambda a: a.log10(),
    "floor": lambda a: a.floor(),
    "ceil": lambda a: a.ceil(),
    "sin": lambda a: a.sin(),
    "cos": lambda a: a.cos(),
    "tan": lambda a: a.tan(),
    "asin": lambda a: a.asin(),
    "acos": lambda a: a.acos(),
    "atan": lambda a: a.atan(),
    "sinh": lambda a: a.sinh(),
    "cosh": lambda a: a.cosh(),
    "tanh": lambda a: a.tanh(),
    "asinh": lambda a: a.asinh(),
    "acosh": lambda a: a.acosh(),
    "atanh": lambda a: a.atanh(),
}
