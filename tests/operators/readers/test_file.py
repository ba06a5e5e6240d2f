"""readers.file through pipelines; which files are found is tested with the format."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ArgumentValueError, ReaderError


def contents_and_labels(batches: int, **arguments: Any) -> tuple[list[bytes], list[int]]:
    @pipeline_def(batch_size=3, num_threads=2, seed=1)
    def graph() -> Any:
        return tuple(fn.readers.file(name="reader", **arguments))

    pipe = graph()
    contents: list[bytes] = []
    labels: list[int] = []
    for _ in range(batches):
        data, label = pipe.run()
        contents += [np.asarray(item).tobytes() for item in data]
        for item in label:
            assert np.asarray(item).shape == (1,)
            assert np.asarray(item).dtype == np.int32
            labels.append(int(np.asarray(item)[0]))
    return contents, labels


def by_dali(dali: ModuleType, batches: int, **arguments: Any) -> list[int]:
    sources = pytest.importorskip("nvidia.dali.fn")

    @dali.pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def graph() -> Any:
        return tuple(sources.readers.file(name="reader", **arguments))

    pipe = graph()
    return [int(np.asarray(item)[0]) for _ in range(batches) for item in pipe.run()[1]]


def test_files_come_in_order_with_labels(photo_folder: Path, photo_list: list[tuple[Path, int]]) -> None:
    contents, labels = contents_and_labels(4, file_root=str(photo_folder))
    assert contents == [path.read_bytes() for path, _ in photo_list]
    assert labels == [label for _, label in photo_list]


@pytest.mark.parametrize("shard", [0, 1, 4])
@pytest.mark.parametrize("pad_last_batch", [False, True])
def test_shards_equal_dali(
    oracle: ModuleType, photo_list: list[tuple[Path, int]], shard: int, pad_last_batch: bool
) -> None:
    options = {
        "files": [str(path) for path, _ in photo_list],
        "shard_id": shard,
        "num_shards": 5,
        "pad_last_batch": pad_last_batch,
    }
    assert contents_and_labels(6, **options)[1] == by_dali(oracle, 6, **options)


def test_shuffled_epochs_are_permutations(photo_list: list[tuple[Path, int]]) -> None:
    files = [str(path) for path, _ in photo_list]
    _, labels = contents_and_labels(8, files=files, random_shuffle=True)
    assert sorted(labels[:12]) == sorted(labels[12:]) == list(range(12))
    assert labels[:12] != labels[12:]


def test_missing_files_are_named(photo_list: list[tuple[Path, int]]) -> None:
    files = [str(photo_list[0][0]), "/nowhere/at/all.jpg"]
    with pytest.raises(ReaderError, match=r"cannot open the file '/nowhere/at/all\.jpg'"):
        contents_and_labels(2, files=files)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "one of file_root"),
        ({"files": ["a"], "file_list": "b"}, "mutually exclusive"),
        ({"file_root": "a", "labels": [1]}, "labels requires files"),
    ],
)
def test_arguments_that_do_not_go_together(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentValueError, match=message):
        contents_and_labels(1, **arguments)
