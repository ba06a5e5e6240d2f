"""Converts between float32 and 16-bit floats with integer arithmetic that compilers vectorize.

NumPy's conversion is about a hundred times as slow, numba does not support float16, and only torch supports bfloat16.
float16 is IEEE 754 binary16 (5 exponent bits, 10 fraction bits); bfloat16 is the upper half of binary32. Rounding is
to nearest: ties away from zero for float16, like DALI on the CPU, and to even for bfloat16, like torch.
"""

from __future__ import annotations

import numpy as np

from dalify.base.compiling import njit

_SIGN, _MAGNITUDE = np.uint32(0x8000_0000), np.uint32(0x7FFF_FFFF)
_INFINITY = np.uint32(0x7F80_0000)
_FIRST_ABOVE = np.uint32((127 + 16) << 23)  # 65536
_FIRST_NORMAL = np.uint32((127 - 14) << 23)  # the smallest normal number of binary16
_EXPONENT_SHIFT = np.uint32((127 - 15) << 23)
_STEPS = np.float32(2.0**24)  # the value of a subnormal number of binary16 is its fraction bits divided by this
_MAX_SUBNORMAL = np.float32(1024)
_REBIAS = np.float32(2.0**112)
_ONE, _THIRTEEN, _SIXTEEN = np.uint32(1), np.uint32(13), np.uint32(16)
_HALF_INFINITY, _HALF_NAN = np.uint32(0x7C00), np.uint32(0x7E00)
_HALF_OF_13, _BELOW_HALF_OF_16 = np.uint32(0x1000), np.uint32(0x7FFF)
# The largest float32 below 0.5: with 0.5 the sum would round up for the value before a half.
_JUST_BELOW_HALF = np.float32(0.49999997)
_QUIET = np.uint32(0x0040)


@njit(nogil=True, cache=True)
def _to_float16(out, values, bits):
    for i in range(values.size):
        magnitude = bits[i] & _MAGNITUDE
        normal = (magnitude - _EXPONENT_SHIFT + _HALF_OF_13) >> _THIRTEEN
        small = np.uint32(np.int32(min(abs(values[i]) * _STEPS, _MAX_SUBNORMAL) + _JUST_BELOW_HALF))
        large = _HALF_NAN if magnitude > _INFINITY else _HALF_INFINITY
        found = large if magnitude >= _FIRST_ABOVE else (small if magnitude < _FIRST_NORMAL else normal)
        out[i] = np.uint16(found | ((bits[i] & _SIGN) >> _SIXTEEN))


@njit(nogil=True, cache=True)
def _to_bfloat16(out, bits):
    for i in range(bits.size):
        word = bits[i]
        rounded = (word + _BELOW_HALF_OF_16 + ((word >> _SIXTEEN) & _ONE)) >> _SIXTEEN
        is_nan = (word & _MAGNITUDE) > _INFINITY  # rounding could make it infinite
        out[i] = np.uint16((word >> _SIXTEEN) | _QUIET if is_nan else rounded)


@njit(nogil=True, cache=True)
def _from_float16(values, bits, halves):
    for i in range(halves.size):
        bits[i] = (np.uint32(halves[i]) & np.uint32(0x7FFF)) << _THIRTEEN
    for i in range(halves.size):
        values[i] *= _REBIAS
    for i in range(halves.size):
        word = np.uint32(halves[i])
        beyond = _INFINITY if (word & _HALF_INFINITY) == _HALF_INFINITY else np.uint32(0)
        bits[i] |= beyond | ((word << _SIXTEEN) & _SIGN)


def float16_bits(out: np.ndarray, x: np.ndarray) -> None:
    """Convert float32 to float16.

    Args:
        out: output, uint16 with the size of `x`, contiguous. Values of at least 65520 become infinite.
        x: float32, contiguous.
    """
    flat = x.reshape(-1)
    _to_float16(out.reshape(-1), flat, flat.view(np.uint32))


def bfloat16_bits(out: np.ndarray, x: np.ndarray) -> None:
    """Convert float32 to bfloat16.

    Args:
        out: output, uint16 with the size of `x`, contiguous.
        x: float32, contiguous.
    """
    _to_bfloat16(out.reshape(-1), x.reshape(-1).view(np.uint32))


def float32_of_float16(out: np.ndarray, x: np.ndarray) -> None:
    """Convert float16 to float32, which is exact.

    Args:
        out: output, float32 with the size of `x`, contiguous.
        x: float16, contiguous.
    """
    flat = out.reshape(-1)
    _from_float16(flat, flat.view(np.uint32), x.reshape(-1).view(np.uint16))
