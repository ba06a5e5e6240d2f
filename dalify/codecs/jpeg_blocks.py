"""Vectorized functions of the JPEG decoder: inverse DCT, conversion from YCbCr, and upsampling.

numba does not vectorize loops across the passes of a transform, so SIMD code is generated here. Generic LLVM vectors
work on every CPU.

Results equal those of libjpeg-turbo. The transform is the accurate integer transform of Loeffler, Ligtenberg and
Moschytz with 13 bits ("islow"); colors are converted as in JFIF, with 16 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types

from dalify.base.compiling import intrinsic
from dalify.base.llvm import clamp, constant, load, offset, repeat, shuffle, store

_BYTE = ir.IntType(8)
_SHORT = ir.IntType(16)
_INT = ir.IntType(32)
_SIZE = 8
_INTS = ir.VectorType(_INT, _SIZE)
_PIXELS = 16

# Constants of the transform, times 2**13.
_CONSTANT_BITS = 13
_PASS_BITS = 2
_F_0_298, _F_0_390, _F_0_541, _F_0_765 = 2446, 3196, 4433, 6270
_F_0_899, _F_1_175, _F_1_501, _F_1_847 = 7373, 9633, 12299, 15137
_F_1_961, _F_2_053, _F_2_562, _F_3_072 = 16069, 16819, 20995, 25172


@intrinsic
def load_big_endian(typing_context: Any, address: Any) -> tuple[Any, Any]:
    """Return the four big-endian bytes at an address as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total = ir.Constant(ir.IntType(64), 0)
        for place in range(4):  # LLVM combines these into one load
            byte = load(builder, offset(builder, arguments[0], place), _BYTE)
            shift = ir.Constant(ir.IntType(64), 24 - 8 * place)
            total = builder.or_(total, builder.shl(builder.zext(byte, ir.IntType(64)), shift))
        return total

    return types.int64(types.int64), generate


@intrinsic
def load_int32(typing_context: Any, address: Any) -> tuple[Any, Any]:
    """Return the int32 at an address as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sext(load(builder, arguments[0], _INT, 4), ir.IntType(64))

    return types.int64(types.int64), generate


@intrinsic
def store_int32(typing_context: Any, address: Any, value: Any) -> tuple[Any, Any]:
    """Store an int64 at an address as int32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        store(builder, builder.trunc(arguments[1], _INT), arguments[0], 4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def top_bits(typing_context: Any, bits: Any, count: Any) -> tuple[Any, Any]:
    """Return the highest `count` bits of an int64, 1 to 63, as an unsigned integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, count = arguments
        return builder.lshr(bits, builder.and_(builder.neg(count), ir.Constant(count.type, 63)))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def without_top_bits(typing_context: Any, bits: Any, count: Any) -> tuple[Any, Any]:
    """Return an int64 shifted left by the lowest six bits of `count`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, count = arguments
        return builder.shl(bits, builder.and_(count, ir.Constant(count.type, 63)))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def store_byte(typing_context: Any, address: Any, value: Any) -> tuple[Any, Any]:
    """Store the lowest byte of an int64 at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        store(builder, builder.trunc(arguments[1], _BYTE), arguments[0])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def fill_block(typing_context: Any, out: Any, stride: Any, value: Any) -> tuple[Any, Any]:
    """Set 8 x 8 samples to a byte; all arguments are int64, see `inverse_dct`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, stride, value = arguments
        repeated = builder.mul(value, ir.Constant(ir.IntType(64), 0x0101010101010101))
        for row in range(_SIZE):
            place = builder.add(out, builder.mul(stride, ir.Constant(stride.type, row)))
            store(builder, repeated, place)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _transposed(builder: Any, rows: Sequence[Any]) -> list[Any]:
    """Return the columns of eight vectors of eight elements."""
    low = [0, 8, 1, 9, 2, 10, 3, 11]
    high = [4, 12, 5, 13, 6, 14, 7, 15]
    found = list(rows)
    for _ in range(3):
        found = [shuffle(builder, found[index], found[index + 4], lanes) for index in range(4) for lanes in (low, high)]
    return found


def _transform(builder: Any, rows: Sequence[Any], descale_bits: int) -> list[Any]:
    """Return the inverse DCT over eight vectors, each lane independently."""

    def times(value: Any, factor: int) -> Any:
        return builder.mul(value, constant(_INTS, factor))

    def shifted(value: Any) -> Any:
        return builder.shl(value, constant(_INTS, _CONSTANT_BITS))

    add, subtract = builder.add, builder.sub
    z1 = times(add(rows[2], rows[6]), _F_0_541)
    even2 = add(z1, times(rows[6], -_F_1_847))
    even3 = add(z1, times(rows[2], _F_0_765))
    even0 = shifted(add(rows[0], rows[4]))
    even1 = shifted(subtract(rows[0], rows[4]))
    evens = [add(even0, even3), add(even1, even2), subtract(even1, even2), subtract(even0, even3)]

    z3, z4 = add(rows[7], rows[3]), add(rows[5], rows[1])
    z5 = times(add(z3, z4), _F_1_175)
    z1, z2 = times(add(rows[7], rows[1]), -_F_0_899), times(add(rows[5], rows[3]), -_F_2_562)
    z3, z4 = add(times(z3, -_F_1_961), z5), add(times(z4, -_F_0_390), z5)
    odds = [
        add(times(rows[1], _F_1_501), add(z1, z4)),
        add(times(rows[3], _F_3_072), add(z2, z3)),
        add(times(rows[5], _F_2_053), add(z2, z4)),
        add(times(rows[7], _F_0_298), add(z1, z3)),
    ]
    sums = [add(even, odd) for even, odd in zip(evens, odds, strict=True)]
    differences = [subtract(even, odd) for even, odd in zip(evens, odds, strict=True)]
    rounding, shift = constant(_INTS, 1 << (descale_bits - 1)), constant(_INTS, descale_bits)
    return [builder.ashr(add(value, rounding), shift) for value in (*sums, *reversed(differences))]


@intrinsic
def inverse_dct(typing_context: Any, coefficients: Any, out: Any, stride: Any) -> tuple[Any, Any]:
    """Transform 64 dequantized coefficients to 8 x 8 samples of 8 bits, and set the coefficients to zero.

    All arguments are int64: the address of int32 ``[8, 8]``, the address of the first sample, the stride of rows in
    bytes.

    Returns:
        int64, not 0 if a value is so large that libjpeg-turbo's 16-bit arithmetic would overflow.
    """
    signature = types.int64(types.int64, types.int64, types.int64)
    return signature, _generate_dct


def _generate_dct(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    coefficients, out, stride = arguments
    rows: list[Any] = []
    for row in range(_SIZE):
        row_at = offset(builder, coefficients, 4 * _SIZE * row)
        rows.append(load(builder, row_at, _INTS, 4))
        store(builder, constant(_INTS, 0), row_at, 4)
    half = constant(_INTS, 1 << 14)
    excess = constant(_INTS, 0)
    for value in rows:
        excess = builder.or_(excess, builder.add(value, half))
    rows = _transform(builder, rows, _CONSTANT_BITS - _PASS_BITS)
    for value in rows:
        excess = builder.or_(excess, builder.add(value, half))
    columns = _transform(builder, _transposed(builder, rows), _CONSTANT_BITS + _PASS_BITS + 3)
    columns = [clamp(builder, builder.add(value, constant(_INTS, 128)), 0, 255) for value in columns]
    for row, value in enumerate(_transposed(builder, columns)):
        place = builder.add(out, builder.mul(stride, ir.Constant(stride.type, row)))
        store(builder, builder.trunc(value, ir.VectorType(_BYTE, _SIZE)), place)
    large = builder.and_(excess, constant(_INTS, -(1 << 15)))
    wide = builder.bitcast(large, ir.IntType(32 * _SIZE))
    return builder.zext(builder.icmp_unsigned("!=", wide, ir.Constant(wide.type, 0)), ir.IntType(64))


@intrinsic
def rgb_of_pixels(typing_context: Any, luma: Any, blue: Any, red: Any, out: Any, is_bgr: Any) -> tuple[Any, Any]:
    """Convert 16 pixels from YCbCr to RGB or BGR, 48 bytes.

    All arguments are int64: addresses of 16 samples of Y, Cb and Cr, address of the result, and whether blue is first.
    """
    signature = types.void(types.int64, types.int64, types.int64, types.int64, types.int64)
    return signature, _generate_rgb


def _generate_rgb(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    luma, blue, red, out, is_bgr = arguments
    bytes_ = ir.VectorType(_BYTE, _PIXELS)
    shorts, ints = ir.VectorType(_SHORT, _PIXELS), ir.VectorType(_INT, _PIXELS)

    def loaded(address: Any) -> Any:
        return builder.zext(load(builder, address, bytes_), shorts)

    def high_product(value: Any, factor: int) -> Any:  # one instruction
        product = builder.mul(builder.sext(value, ints), constant(ints, factor))
        return builder.trunc(builder.ashr(product, constant(ints, 16)), shorts)

    def rounded(value: Any, factor: int) -> Any:
        """Return value * factor / 2**16, rounded."""
        one = constant(shorts, 1)
        return builder.ashr(builder.add(high_product(builder.shl(value, one), factor), one), one)

    y = loaded(luma)
    cb = builder.sub(loaded(blue), constant(shorts, 128))
    cr = builder.sub(loaded(red), constant(shorts, 128))
    add, subtract = builder.add, builder.sub
    r = add(add(y, cr), rounded(cr, 26345))
    b = add(add(y, add(cb, cb)), rounded(cb, -14942))
    products = add(
        builder.mul(builder.sext(cb, ints), constant(ints, -22554)),
        builder.mul(builder.sext(cr, ints), constant(ints, 18734)),
    )
    products = builder.ashr(add(products, constant(ints, 1 << 15)), constant(ints, 16))
    g = subtract(add(y, builder.trunc(products, shorts)), cr)
    r, g, b = (builder.trunc(clamp(builder, value, 0, 255), bytes_) for value in (r, g, b))
    swaps = builder.icmp_signed("!=", is_bgr, ir.Constant(is_bgr.type, 0))
    first, last = builder.select(swaps, b, r), builder.select(swaps, r, b)
    pair, rest = shuffle(builder, first, g, range(2 * _PIXELS)), shuffle(builder, last, None, range(2 * _PIXELS))
    mixed = [16 * (lane % 3) + lane // 3 if lane % 3 < 2 else 32 + lane // 3 for lane in range(3 * _PIXELS)]
    store(builder, shuffle(builder, pair, rest, mixed), out)
    return context.get_dummy_value()


@intrinsic
def upsampled_pairs(
    typing_context: Any, near: Any, far: Any, even_bias: Any, odd_bias: Any, out: Any
) -> tuple[Any, Any]:
    """Upsample 16 samples of a row of chroma to 32 with libjpeg's triangle filter.

    All arguments are int64: the address of the first sample in the nearer source row, and in the farther one (the same
    if rows are not upsampled), the biases added to even and odd samples before rounding down, and the address of the
    result. The samples before the first and after the last one are also read.
    """
    signature = types.void(types.int64, types.int64, types.int64, types.int64, types.int64)
    return signature, _generate_pairs


def _generate_pairs(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    near, far, even_bias, odd_bias, out = arguments
    bytes_, shorts = ir.VectorType(_BYTE, _PIXELS), ir.VectorType(_SHORT, _PIXELS)
    three, four = constant(shorts, 3), constant(shorts, 4)

    def loaded(address: Any, place: int) -> Any:
        return builder.zext(load(builder, offset(builder, address, place), bytes_), shorts)

    def summed(place: int) -> Any:
        return builder.add(builder.mul(loaded(near, place), three), loaded(far, place))

    middle = builder.mul(summed(0), three)
    pairs: list[Any] = []
    for place, bias in ((-1, even_bias), (1, odd_bias)):
        biases = repeat(builder, builder.trunc(bias, _SHORT), _PIXELS)
        total = builder.add(builder.add(middle, summed(place)), biases)
        pairs.append(builder.trunc(builder.lshr(total, four), bytes_))
    order = [lane // 2 + _PIXELS * (lane % 2) for lane in range(2 * _PIXELS)]
    store(builder, shuffle(builder, pairs[0], pairs[1], order), out)
    return context.get_dummy_value()
