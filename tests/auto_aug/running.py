"""Runs augmentations of dalify and of the real DALI on given samples."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from dalify import fn, pipeline_def

RANDOM = np.random.default_rng(3)


def picture(height: int, width: int, low: int = 10, high: int = 240) -> np.ndarray:
    """An image of gradients with some noise, uint8 HWC."""
    rows, columns = np.mgrid[0:height, 0:width]
    ramps = np.stack([rows / height, columns / width, (rows + columns) / (height + width)], axis=-1)
    noise = RANDOM.uniform(-0.1, 0.1, ramps.shape)
    return (low + (high - low) * np.clip(ramps + noise, 0, 1)).astype(np.uint8)


def augmented(
    use: Callable[[Any], Any], samples: Sequence[np.ndarray], layout: str = "HWC", device: str = "cpu", **options: Any
) -> list[np.ndarray]:
    """What dalify makes of a batch."""

    @pipeline_def(batch_size=len(samples), num_threads=2, device_id=0 if device == "gpu" else None, **options)
    def pipeline():
        data = fn.external_source(source=lambda: list(samples), layout=layout)
        return use(data.gpu() if device == "gpu" else data)

    (batch,) = pipeline().run()
    return [np.array(sample) for sample in batch.as_cpu()]


def dali_augmented(
    oracle: ModuleType, use: Callable[[Any], Any], samples: Sequence[np.ndarray], layout: str = "HWC"
) -> list[np.ndarray]:
    """What the real DALI makes of a batch."""
    dali_fn = importlib.import_module("nvidia.dali.fn")

    @oracle.pipeline_def(batch_size=len(samples), num_threads=1, device_id=None, enable_conditionals=True)
    def pipeline():
        data = dali_fn.external_source(source=lambda: list(samples), layout=layout, batch=True)
        return use(data)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DALI's module uses deprecated operators
        built = pipeline()
        built.build()
        (batch,) = built.run()
    return [np.array(batch[index]) for index in range(len(samples))]
