"""Measure the ResNet-50 training pipeline: decode, random_resized_crop 224, mirror, normalize to float CHW."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.common import Contender, Options, compare, photo_folder, pipelines
from benchmarks.torch_loader import PhotoDataset, run_data_loader, training_transform
from benchmarks.training_pipeline import BATCH_SIZE, training


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
