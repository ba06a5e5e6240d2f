"""Headers of a chunk compared with those that are read one by one."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from PIL import Image

from dalify.base.errors import DecodeError
from dalify.codecs.jpeg import read_jpeg_header
from dalify.codecs.jpeg_headers import read_jpeg_headers
from dalify.data import Batch
from tests.helpers.photos import encode_image

RNG = np.random.default_rng(0)


def jpeg(mode: str = "RGB", size: tuple[int, int] = (37, 21), **options) -> bytes:
    channels = {"L": (), "RGB": (3,), "CMYK": (4,)}[mode]
    return encode_image(Image.fromarray(RNG.integers(0, 256, (*size, *channels), np.uint8), mode), "JPEG", **options)


def exif(orientation: int, order: str = "<") -> bytes:
    notes = Image.Exif()
    notes.endian = order
    notes[274] = orientation
    return b"Exif\0\0" + notes.tobytes()


def segment(contents: bytes) -> bytes:
    return b"\xff\xe1" + (len(contents) + 2).to_bytes(2, "big") + contents


PLAIN = jpeg()
VARIANTS = [
    *(jpeg(subsampling=kind) for kind in (0, 1, 2)),
    jpeg("L", (8, 300)),
    jpeg(progressive=True),
    *(jpeg(exif=exif(number, order)) for number in (1, 3, 6, 8) for order in "<>"),
    PLAIN[:2] + segment(b"http://ns.adobe.com/xap/1.0/\0<x/>") + segment(exif(6)) + PLAIN[2:],
    PLAIN[:2] + segment(exif(1)) + segment(exif(8)) + PLAIN[2:],
    PLAIN[:2] + segment(b"") + PLAIN[2:],
    PLAIN[:2] + b"\xff" * 5 + PLAIN[2:],  # fill bytes
    PLAIN[:2] + b"\xff\xd0" + PLAIN[2:],  # a marker without a length
]


def headers_of(files: list[bytes]):
    samples = [np.frombuffer(data, np.uint8) for data in files]
    return samples, read_jpeg_headers(Batch(None, samples))


def test_fields_read_together_equal_fields_read_separately():
    samples, headers = headers_of(VARIANTS)
    assert headers.is_known.all()
    expected = [read_jpeg_header(data) for data in samples]
    assert [headers[index] for index in range(len(samples))] == expected
    upright = [(h.width, h.height) if h.orientation >= 5 else (h.height, h.width) for h in expected]
    np.testing.assert_array_equal(headers.shapes(True)[:, :2], upright)
    np.testing.assert_array_equal(headers.shapes(False)[:, :2], [(h.height, h.width) for h in expected])
    assert headers.are_plain(True).tolist() == [h.frame == 0xC0 and h.orientation == 1 for h in expected]
    assert headers.are_plain(False).tolist() == [h.frame == 0xC0 for h in expected]


def test_others_are_not_known():
    samples, headers = headers_of([jpeg("CMYK"), b"", b"\xff\xd8\xff", b"\x89PNG" + bytes(50), PLAIN[:40], PLAIN])
    assert headers.is_known.tolist() == [False, False, False, False, False, True]
    assert headers[0] is None
    assert read_jpeg_header(samples[0]).components == 4


@pytest.mark.parametrize("seed", range(20))
def test_damaged_headers_are_unknown_or_read_equally(seed: int):
    generator = np.random.default_rng(seed)
    files = []
    for _ in range(200):
        data = bytearray(VARIANTS[generator.integers(len(VARIANTS))][: generator.integers(2, 900)])
        for place in generator.integers(0, len(data), generator.integers(1, 5)):
            data[place] = generator.choice([0, 1, 0xFF, 0xD8, 0xDA, 0xC4, generator.integers(256)])
        files.append(bytes(data))
    samples, headers = headers_of(files)
    for index, data in enumerate(samples):
        if headers.is_known[index]:
            assert headers[index] == read_jpeg_header(data)._replace(has_adobe=False)
        elif data[:3].tobytes() == b"\xff\xd8\xff":
            with contextlib.suppress(DecodeError):
                assert read_jpeg_header(data).components == 4
