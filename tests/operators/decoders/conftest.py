"""Fixtures of the tests of decoding with ``device="mixed"``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from dalify.codecs import device_jpeg
from dalify.codecs.nvimagecodec import NvImageCodecDecoder
from tests.operators.decoders.mixed_pipelines import jpeg, other, write


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Select nvImageCodec; the numbers of images that it decoded, one for each call."""
    if not torch.cuda.is_available():
        monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    pytest.importorskip("nvidia.nvimgcodec", reason="nvImageCodec is not installed: pip install 'dalify[cuda12]'")
    monkeypatch.setenv("DALIFY_DEVICE_DECODER", "nvimgcodec")
    assert device_jpeg.chosen_decoder()[0] == "nvimgcodec"
    found: list[int] = []
    original = NvImageCodecDecoder.decode

    def decode(self: Any, *arguments: Any, **options: Any) -> list[Any]:
        images = original(self, *arguments, **options)
        found.append(sum(image is not None for image in images))
        return images

    monkeypatch.setattr(NvImageCodecDecoder, "decode", decode)
    return found


@pytest.fixture
def many(tmp_path: Path) -> list[str]:
    """Files of many kinds; the first ten are JPEG files that devices decode."""
    files = [
        *(jpeg(seed) for seed in range(4)),
        jpeg(4, progressive=True),
        jpeg(5, "L"),
        jpeg(6, subsampling=0),
        jpeg(7, subsampling=1),
        *(jpeg(seed, orientation=seed) for seed in (3, 6)),
        other("PNG", 1),
        other("BMP", 2),
        jpeg(8, "CMYK"),
        jpeg(9) + bytes(1000),
        other("WEBP", 3),
    ]
    return write(tmp_path, files)
