"""Measure the decoding of images of each format on the CPU with one thread, and with DALI."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.common import Options, check_names, compare, photo_folder, pipelines

BATCH_SIZE = 16
SIZE = 640, 480
# Mode, file extension and options of Pillow.
FORMATS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "JPEG": ("RGB", "jpg", {"quality": 90}),
    "progressive JPEG": ("RGB", "jpg", {"quality": 90, "progressive": True}),
    "CMYK JPEG": ("CMYK", "jpg", {}),
    "PNG": ("RGB", "png", {}),
    "PNG with alpha": ("RGBA", "png", {}),
    "gray PNG": ("L", "png", {}),
    "gray PNG, 16 bits": ("I;16", "png", {}),
    "PNG with palette": ("P", "png", {}),
    "TIFF": ("RGB", "tif", {}),
    "TIFF, deflate": ("RGB", "tif", {"compression": "tiff_adobe_deflate"}),
    "TIFF, LZW": ("RGB", "tif", {"compression": "tiff_lzw"}),
    "TIFF, LZW, predictor": ("RGB", "tif", {"compression": "tiff_lzw", "tiffinfo": {317: 2}}),
    "gray TIFF, LZW, 16 bits": ("I;16", "tif", {"compression": "tiff_lzw"}),
    "TIFF, PackBits": ("RGB", "tif", {"compression": "packbits"}),
    "BMP": ("RGB", "bmp", {}),
    "BMP, 32 bits": ("RGBA", "bmp", {}),
    "gray BMP": ("L", "bmp", {}),
    "BMP with palette": ("P", "bmp", {}),
    "BMP, 1 bit": ("1", "bmp", {}),
    "PPM": ("RGB", "ppm", {}),
    "WebP": ("RGB", "webp", {"quality": 90}),
    "lossless WebP": ("RGB", "webp", {"lossless": True}),
    "JPEG 2000": ("RGB", "jp2", {}),
}


def _decoding(lib: SimpleNamespace, path: str) -> Any:
    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None)
    def pipeline():
        encoded, _ = lib.fn.readers.file(files=[path] * BATCH_SIZE)
        return lib.fn.decoders.image(encoded)

    return pipeline()


def _written(photo: Image.Image, name: str) -> Path:
    mode, extension, options = FORMATS[name]
    path = Path("out/formats") / f"{name.replace(' ', '_').replace(',', '')}.{extension}"
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode == "I;16":
        image = Image.fromarray(np.asarray(photo.convert("L")).astype(np.uint16) * 257)
    else:
        image = photo.convert(mode)
    image.save(path, **options)
    return path


def main(options: Options) -> None:
    """Time each format; ``--only`` selects file extensions."""
    extensions = list(dict.fromkeys(extension for _, extension, _ in FORMATS.values()))
    check_names("image_formats", options, extensions)
    first = min(photo_folder(options).rglob("*.jpg"))
    photo = Image.open(first).convert("RGB").resize(SIZE)
    for name, (_, extension, _) in FORMATS.items():
        if extension not in (options.only or extensions):
            continue
        path = str(_written(photo, name))
        compare(f"decoding {name}, {SIZE[0]}x{SIZE[1]}, one thread", pipelines(_decoding, path=path), options)
