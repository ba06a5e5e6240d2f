"""Conversion of float32 values to an element type within Triton kernels."""

from __future__ import annotations

from dalify.kernels.triton.package import constexpr, tl, triton


@triton.jit
def saturated(value, target: constexpr):
    """Convert float32 values to a type; for integers, round half away from zero and saturate."""
    if target.is_floating():
        result = value.to(target)
    else:
        value = tl.where(value == value, value, -2147483648.0 if target == tl.int32 else 0.0)
        whole = tl.where(value < 0, tl.ceil(value), tl.floor(value))
        up = tl.where(value < 0, -1.0, 1.0)
        whole = tl.where(tl.abs(value - whole) >= 0.5, whole + up, whole)
        if target == tl.int32:
            # The largest int32 is not a float32: 2147483520 is the largest float32 below it.
            bounded = tl.minimum(tl.maximum(whole, -2147483648.0), 2147483520.0).to(tl.int32)
            result = tl.where(whole >= 2147483648.0, 2147483647, bounded).to(target)
        elif target == tl.uint8:
            result = tl.minimum(tl.maximum(whole, 0.0), 255.0).to(tl.int32).to(target)
        elif target == tl.int8:
            result = tl.minimum(tl.maximum(whole, -128.0), 127.0).to(tl.int32).to(target)
        elif target == tl.uint16:
            result = tl.minimum(tl.maximum(whole, 0.0), 65535.0).to(tl.int32).to(target)
        else:
            result = tl.minimum(tl.maximum(whole, -32768.0), 32767.0).to(tl.int32).to(target)
    return result


@triton.jit
def saturated_even(value, target: constexpr, is_even):
    """`saturated` that rounds half to even where `is_even`."""
    # All float32 from 2 ** 23 on are integers, so adding it rounds.
    whole = tl.abs(value) + 8388608.0 - 8388608.0
    whole = tl.where(tl.abs(value) < 8388608.0, whole, tl.abs(value))
    even = tl.where(value < 0, -whole, whole)
    return saturated(value if target.is_floating() else tl.where(is_even, even, value), target)
