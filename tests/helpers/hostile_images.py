"""Small image files that declare large images, tables or chunks."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
from PIL import Image, features


def encoded(kind: str, mode: str = "RGB", **options: object) -> bytes:
    """Return a small image of a format."""
    file = io.BytesIO()
    gradient = Image.radial_gradient("L").resize((48, 40))
    Image.merge("RGB", [gradient, gradient.rotate(90), gradient.rotate(180)]).convert(mode).save(file, kind, **options)
    return file.getvalue()


def chunk(kind: bytes, contents: bytes, length: int | None = None) -> bytes:
    """Return a chunk of a PNG file, which may declare a wrong length."""
    check_sum = zlib.crc32(kind + contents)
    return (
        struct.pack(">I", len(contents) if length is None else length) + kind + contents + struct.pack(">I", check_sum)
    )


def png(pixels: np.ndarray, *others: bytes, is_interlaced: bool = False) -> bytes:
    """Return a PNG of 8 or 16 bits per sample, with rows that are not filtered.

    Args:
        pixels: uint8 or uint16 ``[height, width, channels]``.
        others: chunks before the pixels.
        is_interlaced: use Adam7 interlacing.
    """
    height, width, channels = pixels.shape
    big_endian = pixels.astype(">u2") if pixels.dtype.itemsize == 2 else pixels
    passes = [(0, 0, 1, 1)]
    if is_interlaced:
        passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    rows = b""
    for y, x, row_step, column_step in passes:
        part = big_endian[y::row_step, x::column_step]
        if part.size:
            rows += b"".join(b"\0" + row.tobytes() for row in part)
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, 8 * pixels.dtype.itemsize, color, 0, 0, is_interlaced)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [chunk(b"IHDR", header), *others, chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    )


def _patched(data: bytes, position: int, form: str, *values: int) -> bytes:
    contents = struct.pack(form, *values)
    return data[:position] + contents + data[position + len(contents) :]


def _tiff_with(data: bytes, tag: int, value: int) -> bytes:
    """Return a little-endian TIFF with a 32-bit value for a tag; the entry is replaced or added."""
    (start,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, start)
    entries = [data[start + 2 + 12 * number : start + 14 + 12 * number] for number in range(count)]
    entries = [entry for entry in entries if struct.unpack_from("<H", entry)[0] != tag]
    entries = sorted(
        [*entries, struct.pack("<HHII", tag, 4, 1, value)], key=lambda entry: struct.unpack_from("<H", entry)
    )
    directory = struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4)
    return _patched(data, 4, "<I", len(data)) + directory


def bombs(size: int = 60_000) -> dict[str, bytes]:
    """Return files of a few kB that declare about ``size`` x ``size`` pixels, by format."""
    jpeg, gif, bmp = encoded("JPEG"), encoded("GIF"), encoded("BMP")
    progressive, cmyk = encoded("JPEG", progressive=True), encoded("JPEG", "CMYK")
    tiff, jp2, webp = encoded("TIFF", compression="tiff_deflate"), encoded("JPEG2000"), encoded("WEBP", lossless=True)
    frame = jpeg.index(b"\xff\xc0")
    unusual = _patched(jpeg, frame + 11, "B", 0x41)
    image_descriptor = gif.index(b",\0\0\0\0")
    deep = png(np.zeros((40, 48, 3), np.uint16))
    found = {
        "jpeg": _patched(jpeg, jpeg.index(b"\xff\xc0") + 5, ">HH", size, size),
        "progressive jpeg": _patched(progressive, progressive.index(b"\xff\xc2") + 5, ">HH", size, size),
        "cmyk jpeg": _patched(cmyk, cmyk.index(b"\xff\xc0") + 5, ">HH", size, size),
        "jpeg of unusual sampling": _patched(_patched(unusual, frame + 5, ">HH", size, size), frame + 14, "B", 0x31),
        "png": _patched(encoded("PNG"), 16, ">II", size, size),
        "deep png": _patched(deep, 16, ">II", size, size),
        "gif screen": _patched(gif, 6, "<HH", size, size),
        "gif image": _patched(gif, image_descriptor + 5, "<HH", size, size),
        "bmp": _patched(bmp, 18, "<ii", size, -size),
        "pnm": b"P6 %d %d 255\n" % (size, size) + bytes(100),
        "plain pnm": b"P3 %d %d 255\n" % (size, size) + b"1 " * 100,
        "tiff": _tiff_with(_tiff_with(tiff, 256, size), 257, size),
        "tiff tile": _tiff_with(_tiff_with(tiff, 322, size), 323, size),
        "jpeg 2000 header": _patched(jp2, jp2.index(b"ihdr") + 4, ">II", size, size),
        "jpeg 2000 stream": _patched(jp2, jp2.index(b"\xff\x4f\xff\x51") + 8, ">II", size, size),
        "webp canvas": webp[:12]
        + b"VP8X"
        + struct.pack("<II", 10, 0)
        + 2 * (size - 1).to_bytes(3, "little")
        + webp[12:],
    }
    if features.check("avif"):
        avif = encoded("AVIF")
        found["avif"] = _patched(avif, avif.index(b"ispe") + 8, ">II", size, size)
    return found
