"""Pipelines that the tests of Ray run in threads, processes and actors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dalify import fn, types
from dalify.pipeline import Pipeline, pipeline_def

BATCH_SIZE = 4
EPOCH = 3  # batches of the twelve photos

Samples = list[list[np.ndarray]]


@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=7)
def photos(folder: Path, side: int = 50):
    """Return ragged images, what depends on a condition, uniform floats, labels, and what a Python function gives."""
    encoded, labels = fn.readers.file(file_root=str(folder), random_shuffle=True, name="Reader")
    images = fn.decoders.image(encoded, name="decoded")
    small = fn.resize(images, size=[side, side])
    if fn.random.coin_flip(dtype=types.BOOL):
        small = fn.rotate(small, angle=fn.random.uniform(range=[-30.0, 30.0]), keep_size=True, fill_value=0)
    means = fn.python_function(small, function=mean_of, parallel=True)
    floats = fn.crop_mirror_normalize(small, dtype=types.FLOAT, mirror=fn.random.coin_flip())
    return images, floats, labels, means


@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=7)
def shard(folder: Path, shard_id: int, num_shards: int):
    """Return the photos of a shard."""
    encoded, labels = fn.readers.file(
        file_root=str(folder), random_shuffle=True, shard_id=shard_id, num_shards=num_shards, name="Reader"
    )
    return fn.resize(fn.decoders.image(encoded), size=[20, 20]), labels


def mean_of(image: np.ndarray) -> np.ndarray:
    """Return the mean of each channel."""
    return image.mean(axis=(0, 1))


def values(outputs: Any) -> Samples:
    """Return copies of all samples of a batch."""
    return [[np.array(output.at(index)) for index in range(len(output))] for output in outputs]


def batches(pipe: Pipeline, count: int) -> list[Samples]:
    """Return so many batches."""
    return [values(pipe.run()) for _ in range(count)]


def assert_equal(one: list[Samples], other: list[Samples]) -> None:
    """Check that batches are the same bit for bit."""
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        for left, right in zip(mine, theirs, strict=True):
            for first, second in zip(left, right, strict=True):
                assert first.dtype == second.dtype
                np.testing.assert_array_equal(first, second)
