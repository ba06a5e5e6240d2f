"""A photo set for demo, tutorials and benchmarks, cut from the photographs that scikit-image ships: no download.

Each photograph is a class; its images are cuts of it, mirrored and lit differently, as JPEG files in class folders.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import skimage
from PIL import Image

__all__ = ["PHOTOGRAPHS", "make_photos"]

# Class name → file that the scikit-image wheel contains.
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
    """Write the photo set, unless it is there already.

    Args:
        folder: where `<class>/<number>.jpg` go.
        images_per_class: files per class.
        longest_side: pixels; the other side varies between 62 and 100 % of it.
        quality: of the JPEG files, 1 to 100.
        seed: another one gives other cuts of the same photographs, for instance for validation.

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
    """Take a random part of a photograph, half of the time mirrored, a little darker or brighter."""
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
