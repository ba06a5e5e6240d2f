"""Pillow's memory of unusually large images is returned to the system."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from dalify import eager
from dalify.base.errors import DecodeError
from dalify.base.free_memory import return_free_memory
from dalify.codecs import pillow
from tests.helpers.bitmaps import run_length_bmp
from tests.helpers.photos import encode_image
from tests.helpers.platforms import needs_linux
from tests.helpers.programs import finished

_PROGRAM = """
import io, os, threading
from pathlib import Path
import numpy as np
from PIL import Image
from dalify.codecs.image import decode_image

def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

def decode(size):
    file = io.BytesIO()
    Image.new("RGB", size, (1, 2, 3)).save(file, "PNG")
    pixels = decode_image(np.frombuffer(file.getvalue(), np.uint8))
    assert pixels.shape == (size[1], size[0], 3) and (pixels == [1, 2, 3]).all()

def decode_in_a_thread(size):
    thread = threading.Thread(target=decode, args=(size,))
    thread.start()
    thread.join()

decode_in_a_thread((9, 8))
before = resident_mb()
decode_in_a_thread((8000, 6000))
print(resident_mb() - before)
"""


@needs_linux
def test_memory_of_a_large_image() -> None:
    status, out, errors = finished(_PROGRAM)
    assert status == 0, errors
    assert int(out) < 60  # the image takes 183 MB in Pillow


def image_of(form: str) -> bytes:
    """Return a file that Pillow decodes: most other PNG and BMP files are decoded without it."""
    if form == "BMP":
        return run_length_bmp(50, 60)
    return encode_image(Image.new("P" if form == "PNG" else "RGB", (60, 50)), form)


@pytest.mark.parametrize("form", ["PNG", "BMP", "GIF"])
@pytest.mark.parametrize("is_large", [False, True])
def test_images_that_count(form: str, is_large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if decoding ends early, because a window does not contain the last rows, or the data end."""
    calls: list[int] = []
    monkeypatch.setattr(pillow, "return_free_memory", lambda: calls.append(1))
    monkeypatch.setattr(pillow, "_LARGE_BYTES", 4 * 60 * 50 - is_large)
    encoded = np.frombuffer(image_of(form), np.uint8)
    eager.decoders.image(encoded)
    assert len(calls) == is_large
    eager.decoders.image_slice(encoded, start=[0, 0], shape=[5, 5])
    assert len(calls) == 2 * is_large
    with pytest.raises(DecodeError):
        eager.decoders.image(encoded[: len(encoded) * 2 // 3])
    assert len(calls) == 3 * is_large


def test_it_can_be_called_at_any_time() -> None:
    kept = np.arange(1000)
    return_free_memory()
    assert (kept == np.arange(1000)).all()
