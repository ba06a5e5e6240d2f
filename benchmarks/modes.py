"""Compare a pipeline, lazy mode and immediate calls.

The same operators process the same bytes in memory in the three modes. The time of photographs is mostly that of the
computation, the time of thumbnails of noise mostly that of calls.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cv2
import numpy as np

from benchmarks.common import Contender, Options, RunBatch, compare, photo_folder, run_pipeline
from benchmarks.training_pipeline import BATCH_SIZE, DEVIATION, MEAN
from dalify import eager, fn, lazy, pipeline_def


def chain(space: Any, encoded: Any, mirror: Any, size: int) -> Any:
    """Decode, crop randomly, mirror, normalize; in any mode."""
    images = space.decoders.image(encoded)
    images = space.random_resized_crop(images, size=size)
    return space.crop_mirror_normalize(images, mirror=mirror, mean=MEAN, std=DEVIATION)


def _pipeline(batches: list[list[bytes]], size: int, num_threads: int) -> Any:
    @pipeline_def(batch_size=len(batches[0]), num_threads=num_threads, device_id=None, seed=1)
    def pipeline():
        encoded = fn.external_source(source=batches, cycle="quiet")
        return chain(fn, encoded, fn.random.coin_flip(), size)

    return pipeline()


def _at_once(encoded: list[bytes], size: int) -> Any:
    return chain(eager, encoded, eager.random.coin_flip(batch_size=len(encoded)), size)


@contextmanager
def _run_eager(batches: list[list[bytes]], size: int) -> Iterator[RunBatch]:
    source = itertools.cycle(batches)
    yield lambda: len(_at_once(next(source), size))


@contextmanager
def _run_lazy(batches: list[list[bytes]], size: int, num_threads: int) -> Iterator[RunBatch]:
    source = itertools.cycle(batches)

    def run() -> int:
        with lazy(num_threads=num_threads):
            images = _at_once(next(source), size)
        return len(images.get())

    yield run


def _compare(title: str, batches: list[list[bytes]], size: int, options: Options) -> None:
    for threads in (1, 2):
        plural = "s" * (threads > 1)
        contenders = [
            Contender(f"lazy, {threads} thread{plural}", lambda count=threads: _run_lazy(batches, size, count)),
            Contender(
                f"pipeline, {threads} thread{plural}",
                lambda count=threads: run_pipeline(_pipeline(batches, size, count)),
            ),
            Contender("eager", lambda: _run_eager(batches, size)),
        ]
        compare(f"{title}, {threads} thread{plural}", contenders, options)


def main(options: Options) -> None:
    """Time photographs, then thumbnails."""
    files = [path.read_bytes() for path in sorted(photo_folder(options).glob("*/*.jpg"))]
    files = (files * BATCH_SIZE)[: 2 * BATCH_SIZE]
    _compare("ResNet-50 training from memory", [files[:BATCH_SIZE], files[BATCH_SIZE:]], 224, options)
    random = np.random.default_rng(1)
    small = [cv2.imencode(".jpg", random.integers(0, 256, (32, 32, 3), np.uint8))[1].tobytes() for _ in range(16)]
    _compare("Thumbnails from memory, batches of 16", [small], 24, options)
