"""Pipes around a function that returns nodes, for tests of single operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalify.mediapipe import MediaPipe, fn

BATCH = 3
_random = np.random.default_rng(0)
IMAGES = _random.integers(0, 256, (BATCH, 6, 7, 3)).astype(np.uint8)
PLANES = np.ascontiguousarray(IMAGES.transpose(0, 3, 1, 2))
FLOATS = _random.normal(size=(BATCH, 4, 5)).astype(np.float32)
SCALES = np.array([0.5, 1.0, 1.5], np.float32)


class Graph(MediaPipe):
    """A pipe around a function that returns nodes."""

    def __init__(self, make: Callable[[], Any], **options: Any) -> None:
        super().__init__(device="cpu", batch_size=BATCH, num_threads=1, **options)
        self.make = make

    def definegraph(self) -> Any:
        return self.make()


def run(make: Callable[[], Any], **options: Any) -> list[np.ndarray]:
    return [output.as_cpu().as_nparray() for output in Graph(make, **options).run()]


def given(array: np.ndarray, layout: str = "") -> Any:
    """A batch as data of the graph; layout as MediaPipe writes it, the batch last."""
    shape = list(array.shape[::-1])
    return fn.MediaConst(data=array, shape=shape, dtype=str(array.dtype), batch_broadcast=False, layout=layout)()
