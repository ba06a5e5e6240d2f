"""BMP files of any kind, from their pixels."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

HEADER_BYTES = (12, 40, 52, 56, 64, 108, 124)


def bmp(
    rows: np.ndarray,
    bits: int,
    *,
    header_bytes: int = 40,
    is_top_first: bool = False,
    palette: np.ndarray | None = None,
    colors: int | None = None,
    masks: Sequence[int] = (),
    compression: int | None = None,
    gap: int = 0,
    width: int | None = None,
) -> bytes:
    """Return a BMP file.

    Args:
        rows: pixels as stored, from the top: unsigned integers ``[height, width]``; compressed data if one-dimensional.
        bits: bits of a pixel.
        header_bytes: size of the header that follows the header of the file, one of `HEADER_BYTES`.
        is_top_first: store the top row first.
        palette: uint8 ``[colors, 3]``, red, green, blue.
        colors: declared number of colors; None for that of the palette.
        masks: bits of red, green, blue and perhaps alpha in a pixel.
        compression: number of the compression; None for the usual one.
        gap: bytes between headers and pixels.
        width: declared width; None for that of the rows.
    """
    if compression is None:
        compression = 3 if masks else 0
    height = rows.shape[0] if rows.ndim == 2 else 1
    width = rows.shape[-1] if width is None else width
    body = packed_rows(rows if is_top_first else rows[::-1], bits) if rows.ndim == 2 else rows.tobytes()
    table = b""
    if palette is not None:
        padding = b"" if header_bytes == 12 else b"\0"
        table = b"".join(bytes(color[::-1].tolist()) + padding for color in palette)
        colors = len(palette) if colors is None else colors
    if header_bytes == 12:
        head = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        signed = -height if is_top_first else height
        head = struct.pack(
            "<IiiHHIIiiII", header_bytes, width, signed, 1, bits, compression, len(body), 2835, 2835, colors or 0, 0
        )
        head += b"".join(struct.pack("<I", mask) for mask in masks)[: None if header_bytes == 40 else header_bytes - 40]
        head = head.ljust(header_bytes, b"\0")
    start = 14 + len(head) + len(table) + gap
    return b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start) + head + table + bytes(gap) + body


def packed_rows(rows: np.ndarray, bits: int) -> bytes:
    """Return rows of pixels, each padded to a multiple of four bytes."""
    if bits >= 8:
        stored = np.ascontiguousarray(rows.astype("<u4")).view(np.uint8).reshape(*rows.shape, 4)
        stored = stored[..., : bits // 8].reshape(len(rows), -1)
    else:
        digits = np.unpackbits(rows.astype(np.uint8)[..., None], axis=2)[..., 8 - bits :]
        stored = np.packbits(digits.reshape(len(rows), -1), axis=1)
    return np.pad(stored, [(0, 0), (0, -stored.shape[1] % 4)]).tobytes()


def run_length_bmp(height: int, width: int, value: int = 1) -> bytes:
    """Return a BMP file with 8 bits, compressed with run lengths, of one index, at most 255 pixels wide."""
    runs = bytes([width, value, 0, 0]) * height + b"\0\1"
    file = bytearray(
        bmp(
            np.frombuffer(runs, np.uint8),
            8,
            palette=np.arange(3, dtype=np.uint8)[:, None].repeat(3, 1),
            compression=1,
            width=width,
        )
    )
    file[22:26] = struct.pack("<i", height)
    return bytes(file)
