"""Deflate streams and checksums, with ISA-L and with zlib."""

from __future__ import annotations

import importlib
import sys
import zlib
from collections.abc import Iterator

import numpy as np
import pytest

from dalify.base import deflate
from dalify.base.errors import DecodeError
from dalify.codecs.image import decode_image
from tests.helpers.hostile_images import png


@pytest.fixture(params=["isal", "zlib"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "zlib":
        monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)
    importlib.reload(deflate)
    yield request.param
    monkeypatch.undo()
    importlib.reload(deflate)


def test_both_libraries_give_the_same_results(library: str) -> None:
    assert deflate.crc32.__module__ == {"isal": "isal.isal_zlib", "zlib": "zlib"}[library]
    data = np.random.default_rng(0).integers(0, 9, 5000, np.uint8).tobytes()
    assert deflate.crc32(data, 7) == zlib.crc32(data, 7)
    inflate = deflate.decompressobj()
    first = inflate.decompress(zlib.compress(data), 100)
    assert first + inflate.decompress(inflate.unconsumed_tail, 10_000) == data
    pixels = np.random.default_rng(0).integers(0, 256, (40, 30, 3), np.uint8)
    encoded = png(pixels)
    np.testing.assert_array_equal(decode_image(encoded), pixels)
    place = encoded.index(b"IDAT") + 30
    with pytest.raises(DecodeError, match="checksum"):
        decode_image(encoded[:place] + bytes([encoded[place] ^ 8]) + encoded[place + 1 :])
