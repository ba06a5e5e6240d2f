"""Converts between dtypes like the ``dtype`` argument of operators: round, then saturate.

All kernels that compute in one dtype and store another use the same rules, on the CPU (NumPy, numba) and on the
accelerator (torch):

- a float becomes an integer by rounding half away from zero (0.5 -> 1, -0.5 -> -1, 2.5 -> 3), then saturating;
- NaN becomes the minimum of int32 and int64, 2**63 in uint64, and 0 in other integer types, as in DALI;
- a float becomes a boolean by rounding first: 0.3 is False, -0.5 and NaN are True;
- values that float16 cannot represent are rounded to nearest, and values of at least 65520 become infinite. Ties are
  rounded away from zero on the CPU and to even on the accelerator, as in DALI.

Windows of arrays are converted by `truncate_cast`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base import scratch
from dalify.base.compiling import njit
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import is_bfloat16
from dalify.data.samples import Samples
from dalify.kernels.arrays.frozen import read_only
from dalify.kernels.arrays.half import bfloat16_bits, float16_bits, float32_of_float16
from dalify.kernels.arrays.joined import blocks, joined, separate, split
from dalify.kernels.arrays.wide_torch import widened
from dalify.kernels.dispatch import prefer_triton

if TYPE_CHECKING:
    import torch

# The largest float32 below 0.5. floor(v + 0.5) would turn 0.49999997 into 1, because the sum rounds up; with this
# constant the sum of an exact half still rounds up to the next integer and that of its predecessor does not.
_JUST_BELOW_HALF = np.float32(0.49999997)
_ZERO = np.float32(0)
_UINT8_MAX = np.float32(255)
_CHUNK_FRAMES = 1 << 20
_COMPILED_ELEMENTS = 1 << 9  # NumPy converts fewer elements, such as fill values, without releasing the GIL
_KEPT_ELEMENTS = 1 << 19  # each thread reuses its memory for temporary results of up to this size
_JOINED_ELEMENTS = 1 << 12  # larger samples are not copied to be converted in one call


@njit(inline="always", nogil=True)
def to_uint8(value: np.float32) -> np.uint8:
    """Round a float32 half away from zero and saturate it to 0..255; NaN becomes 0. For use in numba loops."""
    limited = min(max(value, _ZERO), _UINT8_MAX)
    return np.uint8(np.int32(limited + _JUST_BELOW_HALF)) if value == value else np.uint8(0)


# The most frequent conversion: it takes two thirds of the time of `_round_floats`.
@njit(nogil=True, cache=True)
def _float32_to_uint8(out: np.ndarray, x: np.ndarray) -> None:
    for i in range(x.size):
        out[i] = to_uint8(x[i])


def round_half_away(x: np.ndarray) -> np.ndarray:
    """Round floats to integral values, halves away from zero (NumPy's ``rint`` rounds them to even).

    Args:
        x: float array of any shape.

    Returns:
        A new array of the same shape and dtype.
    """
    whole = np.trunc(x)
    with np.errstate(invalid="ignore"):  # inf - inf
        return whole + np.copysign(np.abs(x - whole) >= 0.5, x).astype(x.dtype)


def saturate_cast(out: np.ndarray, x: np.ndarray) -> None:
    """Convert `x` to the dtype of `out`: floats are rounded half away from zero, integers are saturated.

    Args:
        out: output with the shape of `x`, any numeric or boolean dtype.
        x: array of any numeric or boolean dtype. NaN becomes `nan_as_integer` in an integer `out` and True in a
            boolean one; values beyond the range of a float `out` become infinite.
    """
    source, target = x.dtype, out.dtype
    is_dense = out.flags.c_contiguous and x.flags.c_contiguous
    if is_bfloat16(target):
        bfloat16_bits(out.view(np.uint16), np.ascontiguousarray(x, np.float32))
    elif source == target or source.kind == "b":
        np.copyto(out, x, casting="unsafe")
    elif source == np.float32 and target == np.uint8 and is_dense:
        _float32_to_uint8(out.reshape(-1), x.reshape(-1))
    elif target == np.float16:
        _to_float16(out, x)
    elif source == np.float16 and target == np.float32 and is_dense:
        float32_of_float16(out, x)
    elif target.kind == "b":
        np.not_equal(round_half_away(x) if source.kind == "f" else x, 0, out=out)
    elif target.kind == "f" and (source.kind != "f" or source.itemsize < target.itemsize):
        np.copyto(out, x, casting="unsafe")
    elif target.kind == "f":
        with np.errstate(over="ignore", under="ignore"):
            np.copyto(out, x, casting="unsafe")
    elif source.kind == "f":
        values = x
        if source == np.float16:
            values = np.empty(x.shape, np.float32)
            float32_of_float16(values, np.ascontiguousarray(x))
        if is_dense and x.size >= _COMPILED_ELEMENTS:
            _round_floats(out.reshape(-1), read_only(values.reshape(-1)), *_limits(target.char, values.dtype.char))
        else:
            _float_to_integer(out, values)
    else:
        _integer_to_integer(out, x)


def truncate_cast(out: np.ndarray, x: np.ndarray) -> None:
    """Convert `x` to the dtype of `out` as DALI's crops and slices do.

    Args:
        out: output with the shape of `x`, any numeric or boolean dtype.
        x: array of any numeric or boolean dtype. Floats are truncated to integers. Values out of the range of a smaller
            float type, and infinities, become its largest finite number. Otherwise like `saturate_cast`.
    """
    if out.dtype.kind in "iu" and x.dtype.kind == "f":
        x = np.trunc(x)
    elif (out.dtype == np.float16 and x.dtype != np.float16) or (out.dtype == np.float32 and x.dtype == np.float64):
        largest = np.finfo(out.dtype).max.astype(np.float32)
        with np.errstate(over="ignore"):
            x = np.clip(x.astype(np.float32), -largest, largest)
    saturate_cast(out, x)


def fill_in_range(values: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return fill values as DALI converts them to an element type: integers are truncated and keep the lowest bits.

    DALI leaves the conversion of float32 to the compiler: on the CPU it goes through int32 (int64 for larger types),
    where values that do not fit become the minimum. So -1 is 255 in uint8, 300 is 44, and 1e10 and NaN are 0.

    Args:
        values: the user's numbers. Integers are not rounded to float32.
        dtype: element type of the result of the operator.

    Returns:
        an array of `dtype` for integers and booleans (only 0 is False), of float32 for floats.
    """
    given = np.asarray(values)
    if dtype.kind == "b":
        return given != 0
    if given.dtype.kind == "i" and dtype.kind in "iu":
        return given.astype(dtype)
    with np.errstate(over="ignore"):
        fills = given.astype(np.float32)
    if dtype.kind not in "iu":
        return fills
    wide = np.dtype(np.int64 if dtype.itemsize > 4 or dtype == np.uint32 else np.int32)
    end = np.float32(-float(np.iinfo(wide).min))
    is_high = (fills >= end) & (dtype == np.uint64)
    reduced = np.where(is_high, fills - end, fills)
    fits = (reduced >= -end) & (reduced < end)
    whole = np.where(fits, reduced, -end).astype(wide).astype(dtype)
    return np.where(is_high, whole ^ dtype.type(2**63), whole) if dtype == np.uint64 else whole


def fill_elements(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return the user's fill values as an array of `dtype`; see `fill_in_range`. Do not modify it: it is cached."""
    return _cached_elements(values.tobytes(), values.dtype, values.shape, dtype)


@lru_cache(256)
def _cached_elements(content: bytes, given: np.dtype[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    found = np.empty(shape, dtype)
    saturate_cast(found, fill_in_range(np.frombuffer(content, given).reshape(shape), dtype))
    return found


def constants_in_range(values: Sequence[float], dtype: np.dtype[Any]) -> np.ndarray:
    """Return `fill_in_range` of constants. Do not modify it: it is cached, because converting is slow."""
    return _cached_in_range(dtype, *values)


@lru_cache(256, typed=True)  # integers and floats of the same value are converted differently
def _cached_in_range(dtype: np.dtype[Any], *values: float) -> np.ndarray:
    return fill_in_range(values, dtype)


def saturate_cast_samples(out: Samples, x: Samples) -> None:
    """Apply `saturate_cast` to each sample of a chunk; `out` has the shapes of `x`."""
    if out.dense is not None and x.dense is not None:
        saturate_cast(out.dense, x.dense)
        return
    sizes = x.shapes.prod(1)
    if sizes.sum() > len(x) * _JOINED_ELEMENTS:
        for target, values in zip(out.arrays(), x.arrays(), strict=True):
            saturate_cast(target, values)
        return
    for numbers in blocks(sizes):
        target, source = (out, x) if len(numbers) == len(x) else (out.take(numbers), x.take(numbers))
        store_joined(target, joined(source))


def in_float32(out: Samples, x: Samples, fill: Callable[[Samples, Samples, np.ndarray], None]) -> None:
    """Call a function that computes in float32, for as many samples at a time as fit into the CPU cache.

    Args:
        out: N samples of any element type; the results are rounded and saturated for integers.
        x: N samples of any element type.
        fill: function of results and inputs, both float32, and the indices of the samples.
    """
    sizes = out.shapes.prod(1)
    for numbers in blocks(sizes):
        target, source = out.take(numbers), x.take(numbers)
        if x.dtype != np.float32:
            elements = joined(source).reshape(-1)
            floats = _temporary("float32 inputs", elements.size)
            np.copyto(floats, elements, casting="unsafe")
            source = split(floats, source.shapes)
        if out.dtype == np.float32:
            fill(target, source, numbers)
        else:
            values = _temporary("float32 results", int(sizes[numbers].sum()))
            fill(split(values, target.shapes), source, numbers)
            store_joined(target, values)


def _temporary(name: str, size: int) -> np.ndarray:
    """Return uninitialized float32 [size] for `in_float32`."""
    return scratch.borrow(name, (size,), np.float32) if size <= _KEPT_ELEMENTS else np.empty(size, np.float32)


def store_joined(out: Samples, values: np.ndarray) -> None:
    """Store elements in the form of `joined` in the samples; they are rounded and saturated for integers."""
    if out.dense is not None or len(out) == 1:
        target = next(out.arrays()) if out.dense is None else out.dense
        saturate_cast(target.reshape(values.shape), values)
        return
    target = np.empty(values.size, out.dtype)
    saturate_cast(target, values.reshape(-1))
    separate(out, target)


def _to_float16(out: np.ndarray, x: np.ndarray) -> None:
    with np.errstate(over="ignore", under="ignore"):
        values = np.ascontiguousarray(x, np.float32)  # DALI rounds float64 twice as well
    if out.flags.c_contiguous:
        float16_bits(out.view(np.uint16), values)
    else:
        dense = np.empty(values.shape, np.uint16)
        float16_bits(dense, values)
        np.copyto(out.view(np.uint16), dense)


def nan_as_integer(bits: int, signed: bool) -> int:
    """Return the integer to which NaN is converted on x86 processors, and in DALI."""
    if bits < 32 or (bits == 32 and not signed):
        return 0
    return -(2 ** (bits - 1)) if signed else 2 ** (bits - 1)


@cache
def _limits(target: str, source: str) -> tuple[Any, ...]:
    """Return the arguments of `_round_floats` for the character codes of two element types."""
    integer, real = np.dtype(target).type, np.dtype(source).type
    limits = np.iinfo(integer)
    end = real(2.0 ** (limits.bits - (limits.min < 0)))
    # The maximum of the integers may not be a float (2**31 - 1 in float32).
    high = min(real(limits.max), np.nextafter(end, real(0)))
    of_nan = nan_as_integer(limits.bits, limits.min < 0)
    return real(limits.min), high, end, integer(limits.max), integer(of_nan), np.nextafter(real(0.5), real(0))


@njit(nogil=True, cache=True)
def _round_floats(out, x, low, high, end, largest, of_nan, just_below_half):
    """Round floats and saturate them.

    Args:
        out: integers, one dimension, output.
        x: floats, one dimension.
        low: minimum of the integers, a float.
        high: largest float that is an integer of the type.
        end: smallest float above the integers.
        largest: the result for floats from `end` on.
        of_nan: the result for NaN.
        just_below_half: the largest float below 0.5; see `_JUST_BELOW_HALF`.
    """
    for i in range(x.size):
        value = x[i]
        near = value + math.copysign(just_below_half, value)
        held = near if near > low else low
        held = held if held < high else high
        whole = largest if near >= end else out.dtype.type(held)
        out[i] = of_nan if value != value else whole


def _float_to_integer(out: np.ndarray, x: np.ndarray) -> None:
    """`_round_floats` in NumPy, for few elements and for arrays with strides."""
    limits = np.iinfo(out.dtype)
    rounded = round_half_away(x)
    above = rounded >= 2.0 ** (limits.bits - (limits.min < 0))
    # The maximum of the dtype may not be a float (2**31 - 1 in float32): larger values are zeroed here and set below.
    is_nan = np.isnan(rounded)
    rounded[above | is_nan] = 0
    np.maximum(rounded, limits.min, out=rounded)
    np.copyto(out, rounded, casting="unsafe")
    out[above] = limits.max
    out[is_nan] = nan_as_integer(limits.bits, limits.min < 0)


def _integer_to_integer(out: np.ndarray, x: np.ndarray) -> None:
    source, target = np.iinfo(x.dtype), np.iinfo(out.dtype)
    low, high = max(source.min, target.min), min(source.max, target.max)
    if low > source.min or high < source.max:
        x = np.clip(x, x.dtype.type(low), x.dtype.type(high))
    np.copyto(out, x, casting="unsafe")


def audio_to_integers(out: np.ndarray, x: np.ndarray) -> None:
    """Convert float audio to integers; 1 becomes the maximum of the dtype.

    Args:
        out: ``[samples, channels]`` of a signed integer type, output.
        x: floats from -1 to 1, with the same shape. Values out of range are saturated.
    """
    for start in range(0, len(x), _CHUNK_FRAMES):
        part = slice(start, start + _CHUNK_FRAMES)
        saturate_cast(out[part], x[part].astype(np.float64) * np.iinfo(out.dtype).max)


_TORCH_INTEGER_BITS = {  # dtype -> (bits, signed); by name, so that this file does not load torch
    "torch.uint8": (8, False),
    "torch.int8": (8, True),
    "torch.uint16": (16, False),
    "torch.int16": (16, True),
    "torch.uint32": (32, False),
    "torch.int32": (32, True),
    "torch.uint64": (64, False),
    "torch.int64": (64, True),
}

_LARGEST = {"torch.float16": float(np.finfo(np.float16).max), "torch.float32": float(np.finfo(np.float32).max)}


@prefer_triton("pointwise", "saturate_cast_samples")
def saturate_cast_samples_torch(out: DeviceSamples, x: DeviceSamples) -> None:
    """`saturate_cast` for samples on the device that have the same offsets in both buffers."""
    saturate_cast_torch(out.block, x.block)


def saturate_cast_torch(out: torch.Tensor, x: torch.Tensor) -> None:
    """`saturate_cast` for torch tensors on any device.

    Halves are rounded away from zero as on the CPU, so that both devices store the same integers.

    Args:
        out: output with the shape of `x`.
        x: tensor of any numeric or boolean dtype, on `out`'s device. uint64 values above 2**63 - 1 are not supported:
            torch does not support arithmetic on them.
    """
    target = _TORCH_INTEGER_BITS.get(str(out.dtype))
    source = _TORCH_INTEGER_BITS.get(str(x.dtype))
    if x.dtype == out.dtype:
        out.copy_(x)
    elif str(out.dtype) == "torch.bool":
        out.copy_(_round_half_away_torch(x) != 0 if x.is_floating_point() else x != 0)
    elif target is None or str(x.dtype) == "torch.bool":
        out.copy_(x)
    elif x.is_floating_point():
        out.copy_(_float_to_integer_torch(x.float() if x.element_size() < 4 else x, *target))
    else:
        bits, signed = target
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        wide = x.long() if source != target else x
        out.copy_(wide.clamp(low, min(high, 2**63 - 1)))


def truncate_cast_torch(out: torch.Tensor, x: torch.Tensor) -> None:
    """`truncate_cast` for torch tensors on any device."""
    source, target = str(x.dtype), str(out.dtype)
    if x.is_floating_point() and target in _TORCH_INTEGER_BITS:
        x = x.trunc()
    elif (target == "torch.float16" and source != target) or (target, source) == ("torch.float32", "torch.float64"):
        largest = _LARGEST[target]
        x = x.float().clamp(-largest, largest)
    saturate_cast_torch(out, x)


def _round_half_away_torch(x: torch.Tensor) -> torch.Tensor:
    whole = x.trunc()
    return whole + ((x - whole).abs() >= 0.5).to(x.dtype).copysign(x)


def _float_to_integer_torch(x: torch.Tensor, bits: int, signed: bool) -> Any:
    if bits < 32 and x.element_size() == 4:  # every bound is a float32
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        return _round_half_away_torch(x.nan_to_num(0.0, float(high), float(low))).clamp(low, high)
    rounded = _round_half_away_torch(widened(x))
    nan = nan_as_integer(bits, signed)
    if bits <= 32:
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        # The bounds again as integers: the largest int32 is not a float32.
        return rounded.nan_to_num(float(nan)).clamp(low, high).long().clamp(low, high)
    is_nan, rounded = rounded.isnan(), rounded.nan_to_num(0.0)
    above = rounded >= 2.0**63  # 2**63 - 1 is not a float64; larger uint64 values are not supported, see the docstring
    whole = rounded.masked_fill(above, 0).clamp(-(2.0**63) if signed else 0, None).long()
    # As int64, 2**63 of uint64 is the minimum.
    return whole.masked_fill(above, 2**63 - 1).masked_fill(is_nan, -(2**63))
