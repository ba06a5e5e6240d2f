"""Measure the ResNet-50 training pipeline: decode, random_resized_crop 224, mirror, normalize to float CHW."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from benchmarks.common import Contender, Options, compare, photo_folder, pipelines
from benchmarks.torch_loader import PhotoDataset, run_data_loader, training_transform

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


def main(options: Options) -> None:
    """Time one thread, then two threads, then dalify with two threads and with one."""
    folder = photo_folder(options)
    ours = {}
    for threads in (1, 2):
        plural = "s" * (threads > 1)
        contenders = pipelines(training, folder=str(folder), num_threads=threads)
        ours[threads] = replace(contenders[0], name=f"dalify, {threads} thread{plural}")
        loader = Contender(
            f"torch DataLoader, {threads} worker{plural}",
            partial(run_data_loader, lambda: PhotoDataset(folder, training_transform()), BATCH_SIZE, threads),
            ("torch", "torchvision"),
            is_in_process=False,
        )
        compare(f"ResNet-50 training, {threads} thread{plural}", [*contenders, loader], options)
    compare("ResNet-50 training, speedup by a second thread", [ours[2], ours[1]], options)
