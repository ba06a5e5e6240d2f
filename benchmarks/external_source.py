"""Measure the overhead of external sources in Python, with small samples of 32x32x3."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.common import Options, compare, pipelines

BATCH_SIZE = 256
SAMPLE = np.zeros((32, 32, 3), np.uint8)
BATCH = np.zeros((BATCH_SIZE, 32, 32, 3), np.uint8)


def per_sample(lib: SimpleNamespace) -> Any:
    """Define a pipeline that calls Python for each sample."""
    fn = lib.fn

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None)
    def pipeline():
        return fn.external_source(source=lambda info: SAMPLE, batch=False)

    return pipeline()


def per_batch(lib: SimpleNamespace) -> Any:
    """Define a pipeline that calls Python for each batch."""
    fn = lib.fn

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None)
    def pipeline():
        return fn.external_source(source=lambda: BATCH, batch=True)

    return pipeline()


def main(options: Options) -> None:
    """Time a callback per sample, then a callback per batch."""
    compare("external_source, one call per sample", pipelines(per_sample), options, unit="samples/s")
    compare("external_source, one call per batch", pipelines(per_batch), options, unit="samples/s")
