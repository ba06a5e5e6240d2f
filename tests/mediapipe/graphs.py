"""Pipes around a function that returns nodes, for tests of single operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalify.mediapipe import MediaPipe, fn

__all__ = ["BATCH", "Graph", "given", "run"]

BATCH = 3


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
