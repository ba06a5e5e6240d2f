"""Images of all kinds that the transforms accept, and the comparison of results."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image

KINDS = ("pil-L", "pil-RGB", "pil-RGBA", "u8-1", "u8-3", "f32-1", "f32-3", "batch-u8", "batch-f32", "nested")
HEIGHT, WIDTH = 37, 52


def _pixels(channels: int, seed: int) -> np.ndarray[Any, Any]:
    """A smooth image, so that filters that differ in the last digit do not differ much."""
    noise = np.random.default_rng(seed).integers(0, 256, (12, 15, channels), dtype=np.uint8)
    return cv2.resize(noise, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC).reshape(HEIGHT, WIDTH, channels)


def image(kind: str) -> Any:
    """An image or a batch of one of the kinds."""
    name, _, detail = kind.partition("-")
    if name == "pil":
        pixels = _pixels(len(detail), 1)
        return Image.fromarray(pixels[..., 0] if detail == "L" else pixels)
    if name in ("u8", "f32"):
        tensor = torch.from_numpy(_pixels(int(detail), 2)).permute(2, 0, 1).contiguous()
        return tensor if name == "u8" else tensor.float() / 255
    batch = torch.stack([torch.from_numpy(_pixels(3, 10 + number)).permute(2, 0, 1) for number in range(3)])
    if name == "nested":
        return torch.stack([batch, batch.flip(-1)])
    return batch if detail == "u8" else batch.float() / 255


def difference(found: Any, wanted: Any) -> float:
    """The largest difference in levels of 255; the kinds, shapes and types have to be the same."""
    if isinstance(wanted, Image.Image):
        assert isinstance(found, Image.Image)
        assert found.mode == wanted.mode
        found, wanted = np.asarray(found), np.asarray(wanted)
    else:
        assert isinstance(found, torch.Tensor)
        assert found.dtype == wanted.dtype
        found, wanted = found.numpy(), wanted.numpy()
    assert found.shape == wanted.shape
    scale = 255.0 if np.issubdtype(wanted.dtype, np.floating) else 1.0
    return float(np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max()) * scale
