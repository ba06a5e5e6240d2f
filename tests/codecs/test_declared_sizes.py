"""Sizes that a small file declares are compared with the limits before memory is allocated, by all decoders."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dalify import eager, fn, pipeline_def
from dalify.base.errors import DecodeError, LimitError
from dalify.base.limits import Limits, applied
from dalify.codecs.decode_batch import blank_image
from dalify.codecs.image import decode_image, image_shape
from dalify.codecs.image_format import as_bytes_array
from tests.helpers.hostile_images import bombs, chunk, encoded, png
from tests.helpers.platforms import needs_linux

BOMBS = bombs()
WAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "decoders.image": lambda data: eager.decoders.image(data),
    "decoders.image_crop": lambda data: eager.decoders.image_crop(data, crop=[8, 8]),
    "decoders.image_slice": lambda data: eager.decoders.image_slice(data, rel_start=[0, 0], rel_shape=[0.1, 0.1]),
    "decoders.image_random_crop": lambda data: eager.decoders.image_random_crop(data),
    "peek_image_shape": lambda data: eager.peek_image_shape(data),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("way", WAYS)
def test_a_declared_size_beyond_the_limit_is_refused(way: str, name: str) -> None:
    with pytest.raises(LimitError, match="max_image_pixels") as caught:
        WAYS[way](np.frombuffer(BOMBS[name], np.uint8))
    assert f"fn.{way}" in str(caught.value)
    assert "60000 x 60000 = 3,600,000,000 pixels" in str(caught.value)


@pytest.mark.parametrize("name", BOMBS)
def test_the_substitute_of_a_bomb_is_small(name: str) -> None:
    assert image_shape(blank_image(as_bytes_array(BOMBS[name]))) == (256, 256, 3)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "PPM", "TIFF", "WEBP", "JPEG2000", "AVIF"])
def test_the_limit_is_exact_and_pillow_has_none(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "AVIF" and "AVIF" not in Image.registered_extensions().values():
        pytest.skip("this Pillow has no AVIF")
    data = encoded(kind)
    expected = decode_image(data)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)  # of somebody else: neither an error nor a warning of it
    with applied(Limits(max_image_pixels=48 * 40)):
        np.testing.assert_array_equal(decode_image(data), expected)
        assert image_shape(data) == (40, 48, 3)
    with applied(Limits(max_image_pixels=48 * 40 - 1)):
        for call in (decode_image, image_shape):
            with pytest.raises(LimitError, match="declares 48 x 40 = 1,920 pixels"):
                call(data)


def test_sequences_of_images_are_limited(tmp_path: Path) -> None:
    (tmp_path / "sequence").mkdir()
    for number in range(4):
        (tmp_path / "sequence" / f"{number}.png").write_bytes(encoded("PNG"))

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, limits={"max_sample_bytes": 4 * 48 * 40 * 3 - 1})
    def pipeline() -> Any:
        return fn.readers.sequence(file_root=str(tmp_path), sequence_length=4)

    with pytest.raises(LimitError, match="the sequence of shape 4 x 40 x 48 x 3"):
        pipeline().run()


CHECK_MEMORY = """
import json, resource, sys
import numpy as np
from dalify import eager
from dalify.base.errors import DalifyError
from tests.helpers.hostile_images import bombs, chunk, encoded, png
for kind in ("JPEG", "PNG", "GIF", "BMP", "PPM", "TIFF", "WEBP", "JPEG2000"):  # all is loaded and compiled
    eager.decoders.image(np.frombuffer(encoded(kind), np.uint8))
eager.decoders.image(np.frombuffer(png(np.zeros((8, 8, 3), np.uint16)), np.uint8))
hostile = bombs()
deep = png(np.zeros((40, 48, 3), np.uint16))
start = deep.index(b"IDAT") - 4
hostile["png chunk"] = deep[:start] + chunk(b"abCd", b"x", 0xF0000000) + deep[start:]
hostile["png pixels"] = deep[:start] + (0xF0000000).to_bytes(4, "big") + deep[start + 4:]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (96 << 20),) * 2)
found = {}
for name, data in hostile.items():
    try:
        found[name] = str(eager.decoders.image(np.frombuffer(data, np.uint8)).shape)
    except DalifyError as error:
        found[name] = type(error).__name__ + (" MemoryError" if "MemoryError" in str(error) else "")
print(json.dumps(found))
"""


@needs_linux
def test_nothing_is_allocated_for_what_is_only_declared() -> None:
    child = subprocess.run(
        [sys.executable, "-c", CHECK_MEMORY], capture_output=True, text=True, timeout=120, check=True
    )
    found = json.loads(child.stdout)
    assert found.pop("png chunk") == "DecodeError"
    assert found.pop("png pixels") in ("DecodeError", "(40, 48, 3)")
    assert set(found.values()) == {"LimitError"}, found
    assert not child.stderr


def test_compressed_metadata_is_harmless() -> None:
    bomb = zlib.compress(bytes(100 << 20), 9)
    notes = [
        chunk(b"zTXt", b"Raw profile type exif\0\0" + bomb),
        chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + bomb),
        chunk(b"iCCP", b"profile\0\0" + bomb),
    ]
    pixels = np.random.default_rng(0).integers(0, 256, (9, 8, 3), np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(decode_image(png(pixels, *notes)), pixels)


def test_the_number_of_scans_is_limited() -> None:
    data = encoded("JPEG", progressive=True)
    last = data.rindex(b"\xff\xda")
    many = data[:last] + data[last:-2] * 400 + data[-2:]
    assert decode_image(many).shape == (40, 48, 3)
    with applied(Limits(max_image_pixels=4800)), pytest.raises(DecodeError, match="scans of 48x40"):
        decode_image(many)


@pytest.mark.timeout(60)
def test_the_time_for_metadata_of_avif_is_proportional_to_its_size() -> None:
    notes = (b"infe" + bytes(8) + b"Exif") * 400_000
    data = struct.pack(">I4s", 16, b"ftyp") + b"avif" + bytes(4) + struct.pack(">I4s", 8 + len(notes), b"free") + notes
    with pytest.raises(DecodeError, match="AVIF"):
        decode_image(data)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_damaged_metadata_is_ignored_without_a_warning(kind: str) -> None:
    if kind == "AVIF" and "AVIF" not in Image.registered_extensions().values():
        pytest.skip("this Pillow has no AVIF")
    # A directory that declares 9 entries but contains one, with a value outside of the file.
    exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x09\x01\x0f\0\x02\0\xff\0\0\0\xff\0\0"
    expected = decode_image(encoded(kind))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Pillow, which reads what it is to write
        data = encoded(kind, exif=exif) if kind != "TIFF" else encoded(kind)
    if kind == "TIFF":
        data = data[:4] + data[4:].replace(b"\x1b\x01\x05\x00\x01\0\0\0", b"\x1b\x01\x05\x00\xff\xff\0\0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(decode_image(data), expected)
        assert image_shape(data) == (40, 48, 3)
