"""Measure the overhead of conditions on samples and of arithmetic, with small samples of 32x32x3."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.common import Options, compare, pipelines

BATCH_SIZE = 256
BATCH = np.full((BATCH_SIZE, 32, 32, 3), 100, np.uint8)


def coin_flip(lib: SimpleNamespace) -> Any:
    """Define a pipeline that mirrors half of its samples with an `if`."""
    fn = lib.fn

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None, enable_conditionals=True)
    def pipeline():
        images = fn.external_source(source=lambda: BATCH, batch=True, layout="HWC")
        if fn.random.coin_flip(probability=0.5, dtype=lib.types.BOOL):
            images = fn.flip(images, horizontal=1)
        else:
            images = fn.copy(images)
        return images

    return pipeline()


def arithmetic(lib: SimpleNamespace) -> Any:
    """Define a pipeline with four operators between a batch and its output."""
    fn = lib.fn

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None)
    def pipeline():
        images = fn.external_source(source=lambda: BATCH, batch=True, layout="HWC")
        return (images * 2.0 + 1.0) / 3.0 - 0.5

    return pipeline()


def main(options: Options) -> None:
    """Time a random condition, then four arithmetic operators."""
    compare("coin-flip conditional", pipelines(coin_flip), options, unit="samples/s")
    compare("arithmetic, four operators", pipelines(arithmetic), options, unit="samples/s")
