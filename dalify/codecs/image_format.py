"""Detects the format of an image from its bytes, because file names may be wrong."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from dalify.base.errors import DecodeError
from dalify.base.wording import counted

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_MAX_SIGNATURE_BYTES = 16
_FILE_NAME = re.compile(rb"[ -~]{0,4000}[.]\w{2,5}")
_PREFIXES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"BM", "BMP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"II+\0", "TIFF"),
    (b"MM\0+", "TIFF"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000"),
    (b"\xff\x4f\xff\x51", "JPEG 2000"),
    (b"GIF8", "GIF"),
)
_HEIF_BRANDS = (b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1")
_OTHER_FORMATS: tuple[tuple[bytes, str], ...] = (
    (b"RIFF", "a RIFF file without a WebP image"),
    (b"fLaC", "FLAC audio"),
    (b"OggS", "an Ogg file"),
    (b"ID3", "MP3 audio"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"<", "text that looks like HTML, SVG or XML, for example the error page of a failed download"),
    (b"version https://", "a git-lfs pointer: run 'git lfs pull'"),
)


def as_bytes_array(data: Bytes | bytes | bytearray | memoryview) -> Bytes:
    """Return encoded data as a contiguous 1-D uint8 array, without a copy if possible.

    Raises:
        DecodeError: the array does not consist of bytes.
    """
    if not isinstance(data, np.ndarray):
        return np.frombuffer(data, np.uint8)
    if data.dtype.itemsize != 1:
        raise DecodeError(
            f"encoded data must be bytes (uint8); got an array of {data.dtype} with shape {data.shape}.",
            hint="If the image is already decoded, omit the decoder.",
        )
    if data.dtype != np.uint8:
        data = data.view(np.uint8)
    return np.ascontiguousarray(data).reshape(-1)


def image_format(data: Bytes) -> str:
    """Return ``JPEG``, ``PNG``, ``BMP``, ``TIFF``, ``WebP``, ``JPEG 2000``, ``PNM``, ``GIF`` or ``AVIF``.

    Args:
        data: encoded data, 1-D uint8.

    Raises:
        DecodeError: the data is empty or not in a known image format.
    """
    head = data[:_MAX_SIGNATURE_BYTES].tobytes()
    if head[:3] == b"\xff\xd8\xff":
        return "JPEG"
    for prefix, name in _PREFIXES:
        if head.startswith(prefix):
            return name
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WebP"
    if head[:1] == b"P" and head[1:2] in b"123456" and head[2:3].isspace():
        return "PNM"
    if head[4:8] == b"ftyp" and head[8:12] in (b"avif", b"avis"):
        return "AVIF"
    if head[4:8] == b"ftyp":
        is_image = head[8:12] in _HEIF_BRANDS
        kind = "a HEIF image" if is_image else "an MP4 or QuickTime file"
        raise DecodeError(
            f"not a supported image: the data is {kind}; it starts with {head!r}.",
            hint="Convert it to JPEG." if is_image else "Use fn.readers.video or fn.decoders.video.",
        )
    text = data[:4096].tobytes()
    if _FILE_NAME.fullmatch(text):
        raise DecodeError(
            f"not an image: the data is the string {text.decode()!r}.",
            hint="Pass the contents of the file: use pathlib.Path(...).read_bytes() or fn.io.file.read.",
        )
    raise DecodeError(_why_not(data.size, head))


def _why_not(size_bytes: int, head: bytes) -> str:
    if size_bytes == 0:
        return "not an image: the data is empty (0 bytes)."
    if size_bytes < 3:
        return f"not an image: only {counted(size_bytes, 'byte')} of data."
    for prefix, name in _OTHER_FORMATS:
        if head.startswith(prefix):
            return f"not an image: the data is {name}; it starts with {head!r}."
    if not any(head):
        return f"not an image: the data ({size_bytes} bytes) starts with zeros, like an incompletely written file."
    return f"not an image: the data ({size_bytes} bytes) starts with {head!r}, which is not a known image format."
