"""The ResNet-50 training pipeline. Imports no other package, so that `benchmarks.startup` measures only the library."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

BATCH_SIZE = 64
MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
DEVIATION = [0.229 * 255, 0.224 * 255, 0.225 * 255]


def training(lib: SimpleNamespace, folder: str, num_threads: int) -> Any:
    """Define the pipeline with dalify or with DALI."""
    fn, types = lib.fn, lib.types

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=num_threads, device_id=None, seed=1)
    def pipeline():
        encoded, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="photos")
        images = fn.decoders.image(encoded, output_type=types.RGB)
        images = fn.random_resized_crop(images, size=224)
        images = fn.crop_mirror_normalize(
            images,
            dtype=types.FLOAT,
            output_layout="CHW",
            mean=MEAN,
            std=DEVIATION,
            mirror=fn.random.coin_flip(),
        )
        return images, labels

    return pipeline()
