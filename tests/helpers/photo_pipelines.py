"""Pipelines of photos for tests with threads, processes and actors, and the comparison of their batches."""

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
    """Return ragged images, results of a condition, labels, and the results of a Python function."""
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
    """Return copies of the next batches."""
    return [values(pipe.run()) for _ in range(count)]


def assert_equal(one: list[Samples], other: list[Samples]) -> None:
    """Check that batches are the same bit for bit."""
    for mine, theirs in zip(one, other, strict=True):
        assert_same_samples(mine, theirs)


def assert_same_samples(one: Samples, other: Samples) -> None:
    """Check that the samples of all outputs of a batch have the same types, shapes and values."""
    for left, right in zip(one, other, strict=True):
        for first, second in zip(left, right, strict=True):
            np.testing.assert_array_equal(first, second, strict=True)


def write_damaged_photos(photo_folder: Path, folder: Path) -> None:
    """Copy photos, three of them damaged."""
    for number, path in enumerate(sorted(photo_folder.glob("*/*.jpg"))):
        (folder / path.parent.name).mkdir(exist_ok=True)
        content = b"no photo" if number in (2, 7, 8) else path.read_bytes()
        (folder / path.parent.name / path.name).write_bytes(content)
