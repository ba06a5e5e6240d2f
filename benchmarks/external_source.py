"""What does it cost to feed samples from Python? Small ones, 32x32x3, so that only the overhead is seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.common import Options, compare, pipelines

__all__ = ["main", "per_batch", "per_sample"]

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
    """A callback per sample, then per batch."""
    compare("external_source, a call per sample", pipelines(per_sample), options, unit="samples/s")
    compare("external_source, a call per batch", pipelines(per_batch), options, unit="samples/s")
