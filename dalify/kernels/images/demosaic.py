"""Bilinear demosaicing of uint8, with the same results as OpenCV.

With explicit SIMD, because numba does not vectorize loops over interleaved colors. Generic LLVM vectors work on every
CPU.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from dalify.base.array_at import array_at, copy_bytes
from dalify.base.compiling import intrinsic, njit
from dalify.base.llvm import constant, load, offset, shuffle, store

_PIXELS = 32
# A vector of pixels, and a neighbor on each side.
MIN_WIDTH = _PIXELS + 2
_BYTES = ir.VectorType(ir.IntType(8), _PIXELS)
_SHORTS = ir.VectorType(ir.IntType(16), _PIXELS)


@intrinsic
def _demosaic_pixels(typing_context: Any, here: Any, stride: Any, out: Any, is_blue: Any, is_green: Any) -> Any:
    """Compute 32 pixels from the 34 values around them in three rows.

    All arguments are int64: the address of the first value, the distance of two rows in bytes, the address of the
    first of 96 bytes to fill, whether the row has blue values, and whether the first value is green.
    """
    signature = types.void(types.int64, types.int64, types.int64, types.int64, types.int64)
    return signature, _generate_pixels


def _generate_pixels(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    here, stride, out, is_blue, is_green = arguments
    add = builder.add

    def loaded(row: int, column: int) -> Any:
        address = add(here, builder.mul(stride, ir.Constant(stride.type, row)))
        return builder.zext(load(builder, offset(builder, address, column), _BYTES), _SHORTS)

    def mean(total: Any, bits: int) -> Any:
        return builder.lshr(add(total, constant(_SHORTS, 1 << (bits - 1))), constant(_SHORTS, bits))

    def is_true(number: Any) -> Any:
        return builder.icmp_signed("!=", number, ir.Constant(number.type, 0))

    def mask(first: int) -> Any:
        return ir.Constant(ir.VectorType(ir.IntType(1), _PIXELS), [(lane + first) % 2 for lane in range(_PIXELS)])

    value = loaded(0, 0)
    beside, upright = add(loaded(0, -1), loaded(0, 1)), add(loaded(-1, 0), loaded(1, 0))
    corners = add(add(loaded(-1, -1), loaded(-1, 1)), add(loaded(1, -1), loaded(1, 1)))
    has_green = builder.select(is_true(is_green), mask(1), mask(0))
    green = builder.select(has_green, value, mean(add(beside, upright), 2))
    of_row = builder.select(has_green, mean(beside, 1), value)
    of_others = builder.select(has_green, mean(upright, 1), mean(corners, 2))
    red = builder.select(is_true(is_blue), of_others, of_row)
    blue = builder.select(is_true(is_blue), of_row, of_others)
    red, green, blue = (builder.trunc(color, _BYTES) for color in (red, green, blue))
    pair, rest = shuffle(builder, red, green, range(2 * _PIXELS)), shuffle(builder, blue, None, range(2 * _PIXELS))
    lanes = [_PIXELS * (lane % 3) + lane // 3 for lane in range(3 * _PIXELS)]
    store(builder, shuffle(builder, pair, rest, lanes), out)
    return context.get_dummy_value()


@njit(nogil=True, cache=True)
def demosaic_images(out_at, out_like, x_at, shapes, blue):
    """Demosaic images; border pixels are copies of their inner neighbors, as in OpenCV.

    Args:
        out_at: addresses of the results, uint8 ``[H, W, 3]``, int64 ``[N]``.
        out_like: an empty array of uint8.
        x_at: addresses of the mosaics, uint8 ``[H, W]``, int64 ``[N]``.
        shapes: H, at least 3, and W, even and at least `MIN_WIDTH`, int64 ``[N, 2]``.
        blue: parity of the rows and columns of blue values, int64 ``[N, 2]``.
    """
    for n in range(len(x_at)):
        height, width = shapes[n]
        out = array_at(out_at[n], (height, width, 3), out_like)
        for y in range(1, height - 1):
            is_blue = y % 2 == blue[n, 0]
            is_green = is_blue != (blue[n, 1] == 1)  # the first column is 1
            source, target = x_at[n] + y * width, out_at[n] + y * width * 3
            for block in range(1, width - 1, _PIXELS):
                x = min(block, width - 1 - _PIXELS)  # still odd: the last pixels may be computed twice
                _demosaic_pixels(source + x, width, target + 3 * x, is_blue, is_green)
            for color in range(3):
                out[y, 0, color] = out[y, 1, color]
                out[y, width - 1, color] = out[y, width - 2, color]
        # Assigning the rows as slices would take ten times as long to compile as the rest.
        size, last = width * 3, out_at[n] + (height - 1) * width * 3
        copy_bytes(out_at[n], out_at[n] + size, size)
        copy_bytes(last, last - size, size)
