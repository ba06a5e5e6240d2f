"""Measure automatic augmentation policies: alone, on images in memory, and in ResNet-50 training."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.common import Options, compare, photo_folder, pipelines

BATCH_SIZE = 64
SIZE = 224
MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
DEVIATION = [0.229 * 255, 0.224 * 255, 0.225 * 255]
_SCHEMES: dict[str, tuple[str, str, dict[str, int]]] = {
    "TrivialAugment": ("trivial_augment", "trivial_augment_wide", {}),
    "AutoAugment": ("auto_augment", "auto_augment", {}),
    "RandAugment": ("rand_augment", "rand_augment", {"n": 2, "m": 9}),
}


def _scheme(lib: SimpleNamespace, scheme: str) -> Callable[[Any], Any]:
    """Return the policy of dalify or DALI as a function of images."""
    module, function, arguments = _SCHEMES[scheme]
    package = lib.fn.__name__.removesuffix(".fn")
    return partial(getattr(importlib.import_module(f"{package}.auto_aug.{module}"), function), **arguments)


def alone(lib: SimpleNamespace, scheme: str) -> Any:
    """Define a pipeline with only the policy; gradients with noise are used instead of photographs."""
    fn, types = lib.fn, lib.types
    augment = _scheme(lib, scheme)
    noise = np.random.default_rng(0).integers(-20, 20, (BATCH_SIZE, SIZE, SIZE, 3))
    batch = np.clip(np.linspace(20, 220, SIZE)[:, None] + noise, 0, 255).astype(np.uint8)

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None, seed=1, enable_conditionals=True)
    def pipeline():
        images = fn.external_source(source=lambda: batch, batch=True, layout="HWC", dtype=types.UINT8)
        return augment(images)

    return pipeline()


def training(lib: SimpleNamespace, folder: str, scheme: str, num_threads: int) -> Any:
    """Define the training pipeline of `resnet_training` with a policy between mirror and normalization."""
    fn, types = lib.fn, lib.types
    augment = _scheme(lib, scheme)

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=num_threads, device_id=None, seed=1, enable_conditionals=True)
    def pipeline():
        encoded, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="photos")
        images = fn.decoders.image(encoded, output_type=types.RGB)
        images = fn.random_resized_crop(images, size=SIZE)
        images = fn.flip(images, horizontal=fn.random.coin_flip())
        images = augment(images)
        images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=DEVIATION)
        return images, labels

    return pipeline()


def main(options: Options) -> None:
    """Time each policy alone, then the two most common policies in a training pipeline."""
    folder = photo_folder(options)
    for scheme in _SCHEMES:
        compare(f"{scheme} alone, 224 x 224", pipelines(alone, scheme=scheme), options)
    for scheme in ("TrivialAugment", "AutoAugment"):
        for threads in (1, 2):
            contenders = pipelines(training, folder=str(folder), scheme=scheme, num_threads=threads)
            plural = "s" * (threads > 1)
            compare(f"ResNet-50 training with {scheme}, {threads} thread{plural}", contenders, options)
