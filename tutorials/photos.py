"""A dataset for demo, tutorials and benchmarks, made from the photographs of scikit-image without a download.

Each photograph is a class. Its images are random crops with random mirroring and brightness, as JPEG files in class
folders.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import skimage
from PIL import Image

__all__ = ["PHOTOGRAPHS", "make_photos"]

# Class name → file in the scikit-image wheel.
PHOTOGRAPHS = {
    "astronaut": "astronaut.png",
    "cat": "chelsea.png",
    "coffee": "coffee.png",
    "galaxies": "hubble_deep_field.jpg",
    "motorcycle": "motorcycle_left.png",
    "retina": "retina.jpg",
    "rocket": "rocket.jpg",
    "tissue": "ihc.png",
}


def make_photos(folder: Path, *, images_per_class: int, longest_side: int, quality: int = 95, seed: int = 1) -> Path:
    """Write the dataset unless it exists.

    Args:
        folder: the folder of `<class>/<number>.jpg`.
        images_per_class: files per class.
        longest_side: length in pixels; the other side varies between 62 and 100 % of it.
        quality: quality of the JPEG files, 1 to 100.
        seed: determines the crops; use another one for validation data.

    Returns:
        `folder`.
    """
    finished = folder / f".made-{images_per_class}-{longest_side}-{quality}-{seed}"
    if finished.exists():
        return folder
    random = np.random.default_rng(seed)
    for class_name, file_name in PHOTOGRAPHS.items():
        directory = folder / class_name
        directory.mkdir(parents=True, exist_ok=True)
        with Image.open(Path(skimage.__file__).parent / "data" / file_name) as photograph:
            original = photograph.convert("RGB")
        for number in range(images_per_class):
            image = cut(original, longest_side, random)
            image.save(directory / f"{number:03d}.jpg", quality=quality, subsampling="4:2:0")
    finished.touch()
    return folder


def cut(original: Image.Image, longest_side: int, random: np.random.Generator) -> Image.Image:
    """Crop a random window of a photograph, mirror it with probability 0.5, and change its brightness slightly."""
    aspect_ratio = random.uniform(0.62, 1.0)
    size = (longest_side, round(longest_side * aspect_ratio))
    if random.random() < 0.3:
        size = size[::-1]
    scale = random.uniform(0.55, 1.0) * min(original.width / size[0], original.height / size[1])
    width, height = size[0] * scale, size[1] * scale
    left, top = random.uniform(0, original.width - width), random.uniform(0, original.height - height)
    image = original.resize(size, Image.Resampling.BICUBIC, box=(left, top, left + width, top + height))
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    gain = random.uniform(0.75, 1.2)
    return image.point([min(255, round(level * gain)) for level in range(256)] * 3)
