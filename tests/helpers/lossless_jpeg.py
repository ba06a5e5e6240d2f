"""An encoder of lossless JPEG, written from the standard, because the libraries of the tests cannot write it."""

from __future__ import annotations

import struct

import numpy as np

_CODE_BITS = 5  # of each of the 17 symbols


def _segment(marker: int, contents: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, 2 + len(contents)) + contents


def _prediction(samples: np.ndarray, y: int, x: int, c: int, predictor: int, first: int, first_row: int) -> int:
    if y == first_row:
        return first if x == 0 else int(samples[y, x - 1, c])
    if x == 0:
        return int(samples[y - 1, x, c])
    a, b, corner = int(samples[y, x - 1, c]), int(samples[y - 1, x, c]), int(samples[y - 1, x - 1, c])
    return {
        1: a,
        2: b,
        3: corner,
        4: a + b - corner,
        5: a + (b - corner) // 2,
        6: b + (a - corner) // 2,
        7: (a + b) // 2,
    }[predictor]


def encoded(pixels: np.ndarray, bits: int = 16, predictor: int = 1, shift: int = 0, restart_rows: int = 0) -> bytes:
    """Encode ``[H, W, C]``."""
    height, width, components = pixels.shape
    samples = pixels.astype(np.int64) >> shift
    scan, text, first_row = b"", "", 0

    def flushed() -> bytes:
        padded = text + "1" * (-len(text) % 8)
        return bytes(int(padded[k : k + 8], 2) for k in range(0, len(padded), 8)).replace(b"\xff", b"\xff\x00")

    for y in range(height):
        if restart_rows and y and y % restart_rows == 0:
            scan, text, first_row = scan + flushed() + bytes([0xFF, 0xD0 + (y // restart_rows - 1) % 8]), "", y
        for x in range(width):
            for c in range(components):
                guess = _prediction(samples, y, x, c, predictor, 1 << (bits - shift - 1), first_row)
                difference = (int(samples[y, x, c]) - guess) & 0xFFFF
                difference -= 65536 if difference > 32768 else 0
                size = abs(difference).bit_length()
                text += f"{size:0{_CODE_BITS}b}"
                if 0 < size < 16:
                    own = difference if difference > 0 else difference + (1 << size) - 1
                    text += f"{own:0{size}b}"
    scan += flushed()
    counts = [0] * 16
    counts[_CODE_BITS - 1] = 17
    frame = struct.pack(">BHHB", bits, height, width, components)
    frame += b"".join(bytes([c + 1, 0x11, 0]) for c in range(components))
    parts = [b"\xff\xd8", _segment(0xC3, frame), _segment(0xC4, bytes([0, *counts, *range(17)]))]
    if restart_rows:
        parts.append(_segment(0xDD, struct.pack(">H", restart_rows * width)))
    chosen = b"".join(bytes([c + 1, 0]) for c in range(components))
    parts.append(_segment(0xDA, bytes([components]) + chosen + bytes([predictor, 0, shift])))
    return b"".join([*parts, scan, b"\xff\xd9"])
