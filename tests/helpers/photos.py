"""Small folders of generated JPEG files, equal on every machine.

The images have smooth color fields with edges and grain, which compress and resample like photographs. Generating one
takes milliseconds.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def drawn_photo(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Draw a photo-like image.

    Returns:
        uint8 array of shape (height, width, 3), RGB.
    """
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float64)
    image = np.zeros((height, width, 3))
    for channel in range(3):
        angle, period, phase = random.uniform(0, np.pi), random.uniform(40, 200), random.uniform(0, 6)
        image[..., channel] = 0.5 + 0.3 * np.sin((rows * np.sin(angle) + columns * np.cos(angle)) / period * 6 + phase)
    for _ in range(4):
        center = random.uniform(0, height), random.uniform(0, width)
        radius = random.uniform(0.1, 0.35) * min(height, width)
        disc = (rows - center[0]) ** 2 + (columns - center[1]) ** 2 < radius**2
        image[disc] = 0.6 * image[disc] + 0.4 * random.uniform(0, 1, 3)
    image += random.normal(0, 0.015, image.shape)
    return (np.clip(image, 0, 1) * 255).round().astype(np.uint8)


def encode_image(image: np.ndarray | Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """Encode an image with Pillow, with the names of its formats and options."""
    file = io.BytesIO()
    (Image.fromarray(image) if isinstance(image, np.ndarray) else image).save(file, kind, **options)
    return file.getvalue()


def write_photo_folder(
    folder: Path,
    *,
    class_names: tuple[str, ...] = ("cat", "dog", "owl"),
    images_per_class: int = 4,
    longest_side: int = 120,
    quality: int = 92,
) -> list[tuple[Path, int]]:
    """Write `folder/<class>/<number>.jpg` of different sizes, landscape and portrait.

    Returns:
        The files with their class index, in the order of a reader that does not shuffle.
    """
    entries = []
    for label, class_name in enumerate(sorted(class_names)):
        directory = folder / class_name
        directory.mkdir(parents=True, exist_ok=True)
        for number in range(images_per_class):
            seed = label * images_per_class + number
            shorter_side = longest_side * (60 + seed * 7 % 35) // 100
            height, width = (shorter_side, longest_side) if seed % 3 else (longest_side, shorter_side)
            path = directory / f"{number:03d}.jpg"
            Image.fromarray(drawn_photo(height, width, seed)).save(path, quality=quality)
            entries.append((path, label))
    return entries
