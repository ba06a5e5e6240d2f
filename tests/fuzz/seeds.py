"""Small valid files of every format that is decoded, generated; the same on every machine."""

from __future__ import annotations

import functools
import io
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from tests.helpers.bitmaps import bmp, run_length_bmp
from tests.helpers.compressed_strips import tiff_of
from tests.helpers.lossless_jpeg import encoded
from tests.helpers.photos import drawn_photo, encode_image


def _image(
    form: str, height: int = 24, width: int = 36, mode: str = "RGB", number: int = 0, **options: object
) -> bytes:
    return encode_image(Image.fromarray(drawn_photo(height, width, number)).convert(mode), form, **options)


def _exif(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = "drawn"
    return exif.tobytes()


def _jpegs() -> list[bytes]:
    return [
        _image("JPEG", quality=70),
        _image("JPEG", quality=60, progressive=True),
        _image("JPEG", mode="CMYK", quality=60),
        _image("JPEG", mode="L", quality=60),
        _image("JPEG", quality=50, exif=_exif(6)),
        encoded(drawn_photo(12, 18).astype(np.uint16) << 8, predictor=4),
        encoded(drawn_photo(12, 18)[..., :1], bits=8, predictor=7, restart_rows=3),
        _image("JPEG", 17, 40, quality=80, subsampling=0, restart_marker_blocks=2),
        _image("JPEG", mode="CMYK", quality=60, progressive=True),
        _image("JPEG", 8, 8, quality=30, optimize=True, subsampling=1),
    ]


def _pngs() -> list[bytes]:
    import cv2

    deep = (drawn_photo(20, 24, 3).astype(np.uint16) * 257)[..., ::-1]
    return [
        _image("PNG"),
        _image("PNG", mode="L"),
        _image("PNG", mode="P"),
        _image("PNG", mode="RGBA"),
        _image("PNG", mode="1"),
        cv2.imencode(".png", deep)[1].tobytes(),
        cv2.imencode(".png", np.ascontiguousarray(deep[..., 0]))[1].tobytes(),
        _interlaced_png(),
    ]


def _interlaced_png() -> bytes:
    """A gray PNG of 8 x 8 in the seven passes of Adam7, which no installed library writes."""
    import struct
    import zlib

    pixels = drawn_photo(8, 8, 2)[..., 0]
    rows = b""
    for top, left, down, right in (
        (0, 0, 8, 8),
        (0, 4, 8, 8),
        (4, 0, 8, 4),
        (0, 2, 4, 4),
        (2, 0, 4, 2),
        (0, 1, 2, 2),
        (1, 0, 2, 1),
    ):
        rows += b"".join(b"\0" + row.tobytes() for row in pixels[top::down, left::right])

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _tiffs() -> list[bytes]:
    import cv2

    deep = drawn_photo(20, 24, 3).astype(np.uint16) * 257
    kinds = ["raw", "tiff_lzw", "tiff_deflate", "packbits", "jpeg"]
    return [
        *[_image("TIFF", compression=kind) for kind in kinds],
        _image("TIFF", mode="L"),
        _image("TIFF", mode="CMYK"),
        _image("TIFF", mode="1", compression="group4"),
        _image("TIFF", mode="P"),
        cv2.imencode(".tiff", deep)[1].tobytes(),
        tiff_of(deep, "lzw", rowsperstrip=6, predictor=True),
        tiff_of(deep[..., :1].astype(np.uint8), "lzw", byteorder=">", bigtiff=True),
        tiff_of(drawn_photo(20, 24)[..., :1], "packbits", rowsperstrip=9),
    ]


def _pnms() -> list[bytes]:
    plain = b"P3\n3 2\n255\n" + b" ".join(b"%d" % n for n in range(18)) + b"\n"
    deep = b"P5\n4 3\n65535\n" + np.arange(12, dtype=">u2").tobytes()
    return [_image("PPM", 10, 12), _image("PPM", 10, 12, mode="L"), _image("PPM", 10, 12, mode="1"), plain, deep]


def _bmps() -> list[bytes]:
    words = np.arange(7 * 13, dtype=np.uint32).reshape(7, 13) * 0x1234567
    colors = drawn_photo(4, 4).reshape(16, 3)
    return [
        *[_image("BMP", mode=mode) for mode in ("RGB", "L", "P", "RGBA", "1")],
        bmp(words & 15, 4, palette=colors, is_top_first=True),
        bmp(words & 15, 8, palette=colors, header_bytes=12),
        bmp(words & 0xFFFF, 16, masks=(0xF800, 0x7E0, 0x1F)),
        bmp(words, 32, header_bytes=124, masks=(0xFF0000, 0xFF00, 0xFF, 0xFF000000)),
        run_length_bmp(7, 13),
    ]


def _gifs() -> list[bytes]:
    frames = [Image.fromarray(drawn_photo(20, 24, number)) for number in range(3)]
    return [
        _image("GIF"),
        _image("GIF", mode="L"),
        encode_image(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=40),
        _image("GIF", mode="P", interlace=1),
    ]


IMAGES: dict[str, tuple[str, Callable[[], list[bytes]]]] = {
    "jpeg": ("jpeg", _jpegs),
    "png": ("png", _pngs),
    "bmp": ("bmp", _bmps),
    "tiff": ("tiff", _tiffs),
    "webp": (
        "riff",
        lambda: [
            _image("WEBP", quality=60),
            _image("WEBP", lossless=True),
            _image("WEBP", mode="RGBA", quality=50),
            _image("WEBP", exif=_exif(3), quality=50),
        ],
    ),
    "gif": ("gif", _gifs),
    "jpeg2000": (
        "jp2",
        lambda: [
            _image("JPEG2000"),
            _image("JPEG2000", mode="L"),
            _image("JPEG2000", irreversible=True),
            _image("JPEG2000", mode="RGBA"),
        ],
    ),
    "pnm": ("pnm", _pnms),
    "avif": ("avif", lambda: [_image("AVIF", quality=50, speed=10), _image("AVIF", mode="RGBA", quality=50, speed=10)]),
}
"""By name: the format of ``tests.fuzz.formats``, and a function that makes the files."""


def _audio(form: str, subtype: str | None = None, channels: int = 1, rate: int = 16000, count: int = 900) -> bytes:
    import soundfile

    time = np.arange(count)[:, None] / rate
    data = 0.4 * np.sin(2 * np.pi * 440 * time * np.arange(1, channels + 1))
    file = io.BytesIO()
    soundfile.write(file, data, rate, subtype=subtype, format=form)
    return file.getvalue()


AUDIO: dict[str, tuple[str, Callable[[], list[bytes]]]] = {
    "wav": (
        "riff",
        lambda: [
            _audio("WAV", "PCM_16"),
            _audio("WAV", "PCM_16", 2),
            _audio("WAV", "PCM_24", 2),
            _audio("WAV", "FLOAT", 1, 8000),
            _audio("WAV", "PCM_U8", 2),
            _audio("WAVEX", "PCM_16", 3),
            _audio("WAV", "ULAW"),
            _audio("WAV", "IMA_ADPCM"),
        ],
    ),
    "flac": ("flac", lambda: [_audio("FLAC"), _audio("FLAC", "PCM_24", 2)]),
    "ogg": ("ogg", lambda: [_audio("OGG"), _audio("OGG", "VORBIS", 2), _audio("OGG", "OPUS", 1, 48000)]),
    "mp3": ("mp3", lambda: [_audio("MP3"), _audio("MP3", None, 2, 44100, 3000)]),
}
"""By name, as ``IMAGES``."""


def _videos(*names: str) -> list[bytes]:
    from tests.helpers.videos import FORMS, write_video

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            codec, options = FORMS[name]
            if "times_ms" in options:
                options = {**options, "times_ms": options["times_ms"][:6]}
            # Not smaller: libx265 writes past its buffers for 32 rows and corrupts the memory of this process.
            found.append(write_video(Path(folder) / name, codec, count=6, size=(48, 64), **options).read_bytes())
    return found


VIDEOS: dict[str, tuple[str, Callable[[], list[bytes]]]] = {
    "mp4": ("mp4", functools.partial(_videos, "closed.mp4", "hevc.mp4", "motion.mp4", "uneven.mp4")),
    "mkv": ("ebml", functools.partial(_videos, "open.mkv")),
    "avi": ("riff", functools.partial(_videos, "mpeg4.avi")),
    "webm": ("ebml", functools.partial(_videos, "vp8.webm", "vp9.webm")),
    "ts": ("any", functools.partial(_videos, "open.ts", "bare.h264")),
}
"""By name, as ``IMAGES``."""


def lz4_block(data: bytes) -> bytes:
    """Return an LZ4 block with literals and matches of bytes that repeat the four before them."""
    found = bytearray()
    half = len(data) // 2
    head = data[:half]
    token = min(len(head), 15) << 4 | 4  # literals, then a match of 8 bytes
    found.append(token)
    if len(head) >= 15:
        rest = len(head) - 15
        found += bytes([255] * (rest // 255)) + bytes([rest % 255])
    found += head + (4).to_bytes(2, "little")
    tail = data[half + 8 :]
    found.append(min(len(tail), 15) << 4)
    if len(tail) >= 15:
        rest = len(tail) - 15
        found += bytes([255] * (rest // 255)) + bytes([rest % 255])
    return bytes(found + tail)
