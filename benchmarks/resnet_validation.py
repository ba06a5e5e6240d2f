"""Measure the ResNet-50 validation pipeline: decode, shorter side 256, center crop 224, normalize to float CHW."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from benchmarks.common import Contender, Options, compare, photo_folder, pipelines
from benchmarks.torch_loader import PhotoDataset, run_data_loader, validation_transform
from benchmarks.training_pipeline import BATCH_SIZE, DEVIATION, MEAN


def validation(lib: SimpleNamespace, folder: str, num_threads: int) -> Any:
    """Define the pipeline with dalify or with DALI."""
    fn, types = lib.fn, lib.types

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=num_threads, device_id=None, seed=1)
    def pipeline():
        encoded, labels = fn.readers.file(file_root=folder, name="photos")
        images = fn.decoders.image(encoded, output_type=types.RGB)
        images = fn.resize(images, resize_shorter=256)
        images = fn.crop_mirror_normalize(
            images, dtype=types.FLOAT, output_layout="CHW", crop=(224, 224), mean=MEAN, std=DEVIATION
        )
        return images, labels

    return pipeline()


def main(options: Options) -> None:
    """Time the pipelines with one thread."""
    folder = photo_folder(options)
    loader = Contender(
        "torch DataLoader, 1 worker",
        lambda: run_data_loader(lambda: PhotoDataset(folder, validation_transform()), BATCH_SIZE, 1),
        ("torch", "torchvision"),
        is_in_process=False,
    )
    contenders = [*pipelines(validation, folder=str(folder), num_threads=1), loader]
    compare("ResNet-50 validation, 1 thread", contenders, options)
