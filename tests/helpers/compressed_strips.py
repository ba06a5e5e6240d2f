"""TIFF files with LZW and PackBits, which tifffile does not write without another package."""

from __future__ import annotations

import itertools
import struct

import numpy as np

CLEAR, END = 256, 257
_FULL = 4094  # entries of the table after which encoders must clear it


def lzw(data: bytes, *, entries: int = _FULL, has_end: bool = True) -> bytes:
    """Compress with LZW as in TIFF 6.0.

    Args:
        data: bytes to compress.
        entries: number of entries of the table after which it is cleared, at most 4094.
        has_end: whether to write the code of the end.
    """
    codes: list[tuple[int, int]] = [(CLEAR, 9)]
    table: dict[bytes, int] = {}
    string = b""
    free = CLEAR + 2

    def width() -> int:
        return min(12, max(9, free.bit_length()))

    def code_of(string: bytes) -> int:
        return string[0] if len(string) == 1 else table[string]

    for byte in data:
        longer = string + bytes([byte])
        if len(longer) == 1 or longer in table:
            string = longer
            continue
        codes.append((code_of(string), width()))
        table[longer] = free
        free += 1
        string = bytes([byte])
        if free >= entries:
            codes.append((CLEAR, width()))
            table.clear()
            free = CLEAR + 2
    if string:
        codes.append((code_of(string), width()))
        free += 1
    if has_end:
        codes.append((END, width()))
    return packed_codes(codes)


def packed_codes(codes: list[tuple[int, int]]) -> bytes:
    """Return codes, each with its number of bits, as bytes."""
    digits = "".join(f"{code:0{bits}b}" for code, bits in codes)
    digits += "0" * (-len(digits) % 8)
    return bytes(int(digits[start : start + 8], 2) for start in range(0, len(digits), 8))


def pack_bits(data: bytes) -> bytes:
    """Compress with PackBits, with all kinds of runs and codes without an effect."""
    found = bytearray()
    for _, group in itertools.groupby(data):
        run = bytes(group)
        for start in range(0, len(run), 128):
            part = run[start : start + 128]
            found += bytes([257 - len(part) & 255, part[0]]) if len(part) > 1 else bytes([0, part[0]])
        if len(found) % 7 == 0:
            found.append(128)
    return bytes(found)


_COMPRESSORS = {"lzw": lzw, "packbits": pack_bits}
_CODES = {"lzw": 5, "packbits": 32773}


def differences(pixels: np.ndarray) -> np.ndarray:
    """Return what the horizontal predictor stores for ``[rows, width, samples]``."""
    return np.diff(pixels, axis=1, prepend=np.zeros_like(pixels[:, :1]))


def tiff_of(
    pixels: np.ndarray,
    compression: str,
    *,
    rowsperstrip: int | None = None,
    predictor: bool = False,
    byteorder: str = "<",
    bigtiff: bool = False,
) -> bytes:
    """Return a TIFF with strips of one of these compressors; the arguments are those of ``tifffile.imwrite``.

    Args:
        pixels: uint8 or uint16 ``[height, width, samples]``.
        compression: ``lzw`` or ``packbits``.
        rowsperstrip: rows of a strip; None for one strip.
        predictor: whether to store horizontal differences.
        byteorder: ``<`` or ``>``.
        bigtiff: whether to write a BigTIFF.
    """
    height, width, samples = pixels.shape
    rows = rowsperstrip or height
    stored = pixels.dtype.newbyteorder(byteorder)
    strips: list[bytes] = []
    for top in range(0, height, rows):
        strip = pixels[top : top + rows]
        strips.append(_COMPRESSORS[compression]((differences(strip) if predictor else strip).astype(stored).tobytes()))
    word, offset_bytes = byteorder + ("Q" if bigtiff else "I"), 8 if bigtiff else 4
    start = 2 * offset_bytes  # of the strips, which are before the directory
    offsets = [start + sum(map(len, strips[:number])) for number in range(len(strips))]
    file = bytearray((b"II" if byteorder == "<" else b"MM") + struct.pack(byteorder + "H", 43 if bigtiff else 42))
    file += struct.pack(byteorder + "HH", 8, 0) * bigtiff
    file += struct.pack(word, 0) + b"".join(strips)
    numbers = {
        256: [width],
        257: [height],
        258: [8 * pixels.dtype.itemsize] * samples,
        259: [_CODES[compression]],
        262: [1 if samples == 1 else 2],
        273: offsets,
        277: [samples],
        278: [rows],
        279: [len(strip) for strip in strips],
        317: [2 if predictor else 1],
    }
    values = dict[int, bytes]()
    for tag, found in numbers.items():
        packed = b"".join(struct.pack(word, number) for number in found)
        if len(packed) > offset_bytes:
            values[tag] = struct.pack(word, len(file))
            file += packed
        else:
            values[tag] = packed
    struct.pack_into(word, file, offset_bytes, len(file))
    file += struct.pack(byteorder + ("Q" if bigtiff else "H"), len(numbers))
    for tag, found in numbers.items():
        head = byteorder + ("HHQ" if bigtiff else "HHI")
        file += struct.pack(head, tag, 16 if bigtiff else 4, len(found)) + values[tag]
    return bytes(file + bytes(offset_bytes))
