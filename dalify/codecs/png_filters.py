"""Undoes the filters of the rows of PNG files."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from dalify.base.compiling import intrinsic, njit
from dalify.base.llvm import constant, count_down, load, store

_PAETH = 4
_BYTE, _SHORT = ir.IntType(8), ir.IntType(16)
_ROW_SIGNATURE = types.void(types.uintp, types.uintp, types.uintp, types.uintp, types.uintp)


@njit(nogil=True, cache=True)
def unfilter(filtered: Any, before: Any, pixel_bytes: int, rows: Any) -> bool:
    """Undo the filters of rows (PNG specification, section 9); return False for an unknown filter.

    Args:
        filtered: uint8 [N, 1 + bytes of a row], with the number of the filter before each row.
        before: uint8, the row before these rows; zeros for the first row of the image.
        pixel_bytes: bytes of a pixel: 1, 2, 3, 4, 6 or 8.
        rows: uint8 [N, bytes of a row], output.
    """
    count, width = rows.shape
    for y in range(count):
        kind, source, target = filtered[y, 0], filtered[y, 1:], rows[y]
        above = before if y == 0 else rows[y - 1]
        if kind > _PAETH:
            return False
        for x in range(width if kind == 0 or kind == 2 else pixel_bytes):
            # There is nothing to the left of the first pixel, so Paeth predicts the byte above.
            up = np.int32(above[x])
            predicted = up if kind == 2 or kind == _PAETH else up >> 1 if kind == 3 else np.int32(0)
            target[x] = np.int32(source[x]) + predicted
        if kind == 1:
            for x in range(pixel_bytes, width):
                target[x] = source[x] + target[x - pixel_bytes]
        elif kind == 3:
            for x in range(pixel_bytes, width):
                average = (np.int32(target[x - pixel_bytes]) + np.int32(above[x])) >> 1
                target[x] = np.int32(source[x]) + average
        elif kind == _PAETH:
            # The vectors are longer than some pixels, but not longer than the rest of the row.
            pixels = max(0, (width - (4 if pixel_bytes <= 4 else 8)) // pixel_bytes)
            if pixels > 0:
                rows_at = target.ctypes.data, source.ctypes.data, above.ctypes.data
                if pixel_bytes <= 4:
                    _paeth_of_four(*rows_at, pixel_bytes, pixels)
                else:
                    _paeth_of_eight(*rows_at, pixel_bytes, pixels)
            for x in range((1 + pixels) * pixel_bytes, width):
                left, up, corner = target[x - pixel_bytes], above[x], above[x - pixel_bytes]
                target[x] = source[x] + _paeth(np.int32(left), np.int32(up), np.int32(corner))
    return True


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _paeth(left: Any, up: Any, corner: Any) -> Any:
    """Return the neighbor that is nearest to ``left + up - corner``."""
    to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    if to_left <= to_up and to_left <= to_corner:
        return left
    return up if to_up <= to_corner else corner


@intrinsic
def _paeth_of_four(typing_context: Any, target: Any, source: Any, above: Any, step: Any, pixels: Any) -> Any:
    """Undo the Paeth filter of pixels of at most four bytes, without branches, which are often predicted wrongly.

    All arguments are ``uintp``: addresses of the first pixel of a row, which is not computed; the bytes of a pixel; the
    number of pixels to compute, at least 1. Four bytes are read and written at each of them.
    """
    return _ROW_SIGNATURE, partial(_generate_paeth, 4)


@intrinsic
def _paeth_of_eight(typing_context: Any, target: Any, source: Any, above: Any, step: Any, pixels: Any) -> Any:
    """`_paeth_of_four` for pixels of at most eight bytes."""
    return _ROW_SIGNATURE, partial(_generate_paeth, 8)


def _generate_paeth(lanes: int, context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
    target, source, above, step, pixels = arguments
    stored, wide = ir.VectorType(_BYTE, lanes), ir.VectorType(_SHORT, lanes)

    def widened(address: Any) -> Any:
        return builder.zext(load(builder, address, stored), wide)

    def magnitude(value: Any) -> Any:
        negative = builder.sub(constant(wide, 0), value)
        return builder.select(builder.icmp_signed("<", value, negative), negative, value)

    def add_pixel(target_at: Any, source_at: Any, above_at: Any, left: Any, corner: Any) -> list[Any]:
        up = widened(above_at)
        rise, run = builder.sub(up, corner), builder.sub(left, corner)
        to_left, to_up, to_corner = magnitude(rise), magnitude(run), magnitude(builder.add(rise, run))
        nearest = builder.select(builder.icmp_signed("<=", to_up, to_corner), up, corner)
        distance = builder.select(builder.icmp_signed("<=", to_up, to_corner), to_up, to_corner)
        nearest = builder.select(builder.icmp_signed("<=", to_left, distance), left, nearest)
        pixel = builder.and_(builder.add(widened(source_at), nearest), constant(wide, 255))
        store(builder, builder.trunc(pixel, stored), target_at)
        return [*(builder.add(address, step) for address in (target_at, source_at, above_at)), pixel, up]

    starts = [builder.add(address, step) for address in (target, source, above)]
    count_down(builder, pixels, (*starts, widened(target), widened(above)), add_pixel)
    return context.get_dummy_value()
