"""Pipelines and files for the tests of decoding with ``device="mixed"``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from dalify import Pipeline, fn, pipeline_def, types
from dalify.base.processors import emulated
from tests.helpers.photos import drawn_photo, encode_image

Arrays = list[np.ndarray[Any, Any]]

BATCH = 5

# Decoders of devices round colors and interpolate chroma in their own way.
LARGEST_MEAN_ON_DEVICES = 1.0


def assert_same(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    """Check an image that a device decoded; in emulation, every value is that of the host."""
    if emulated():
        np.testing.assert_array_equal(found, wanted)
    assert found.shape == wanted.shape
    assert np.abs(found.astype(float) - wanted).mean() < LARGEST_MEAN_ON_DEVICES


def jpeg(seed: int, mode: str = "RGB", orientation: int = 1, **options: Any) -> bytes:
    """Return a JPEG file; the size of the image depends on the seed."""
    image = Image.fromarray(drawn_photo(70 + 9 * (seed % 4), 100 + 5 * (seed % 3), seed)).convert(mode)
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encode_image(image, "JPEG", quality=90, exif=exif, **options)


def other(format_name: str, seed: int) -> bytes:
    return encode_image(drawn_photo(60, 90, seed), format_name)


def write(folder: Path, files: list[bytes]) -> list[str]:
    paths = [folder / f"{number:02d}.img" for number in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    return [str(path) for path in paths]


def pipeline(
    files: list[str], device: str, operator: Any, seed: int = 7, is_shuffled: bool = False, **options: Any
) -> Pipeline:
    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=0, seed=seed, **options)
    def define() -> Any:
        encoded, labels = fn.readers.file(files=files, name="files", random_shuffle=is_shuffled)
        return operator(encoded, device), labels

    return define()


def batches(pipe: Pipeline, count: int) -> Iterator[tuple[Arrays, list[int]]]:
    for _ in range(count):
        images, labels = pipe.run()
        yield (
            [np.asarray(image) for image in images.as_cpu()],
            [int(np.asarray(label)[0]) for label in labels],
        )


def assert_same_batches(pipe: Pipeline, plain: Pipeline, count: int) -> None:
    for (images, labels), (expected, expected_labels) in zip(batches(pipe, count), batches(plain, count), strict=True):
        assert labels == expected_labels
        for found, wanted in zip(images, expected, strict=True):
            assert_same(found, wanted)


OPERATORS: dict[str, Any] = {
    "image": lambda encoded, device: fn.decoders.image(encoded, device=device),
    "BGR": lambda encoded, device: fn.decoders.image(encoded, device=device, output_type=types.BGR),
    "GRAY": lambda encoded, device: fn.decoders.image(encoded, device=device, output_type=types.GRAY),
    "not upright": lambda encoded, device: fn.decoders.image(encoded, device=device, adjust_orientation=False),
    "options": lambda encoded, device: fn.decoders.image(
        encoded,
        device=device,
        hw_decoder_load=0.2,
        hybrid_huffman_threshold=100,
        preallocate_width_hint=640,
        preallocate_height_hint=480,
    ),
    "crop": lambda encoded, device: fn.decoders.image_crop(
        encoded, device=device, crop=[31, 44], crop_pos_x=fn.random.uniform(range=[0.0, 1.0])
    ),
    "random crop": lambda encoded, device: fn.decoders.image_random_crop(encoded, device=device),
    "slice": lambda encoded, device: fn.decoders.image_slice(
        encoded, device=device, rel_start=[0.25, 0.1], rel_shape=[0.5, 0.4]
    ),
}


def damaged(kind: str) -> bytes:
    """Return a damaged JPEG file."""
    data = jpeg(11)
    if kind == "truncated":
        return data[: len(data) // 2]
    if kind == "no quantization tables":
        return data.replace(b"\xff\xdb", b"\xff\xed")  # a segment that decoders skip
    if kind == "no header":
        return data[:40]
    return b"hello"
