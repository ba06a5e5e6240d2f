"""The samples of an epoch are those of DALI for all options of its iterators."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dalify
from dalify.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

EPOCHS = 5
POLICIES = list(LastBatchPolicy)


@pytest.fixture(scope="module")
def numbered_files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return files with their position as label and as only byte."""
    folder = tmp_path_factory.mktemp("numbered")
    paths = [folder / f"{number:02}.dat" for number in range(17)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]))
    return [str(path) for path in paths]


@pytest.fixture(scope="module")
def rival() -> Any:
    pytest.importorskip("nvidia.dali", reason="the real DALI is not installed")
    return pytest.importorskip("nvidia.dali.plugin.pytorch")


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the rival's advice about its own options
        yield


def pipeline(dali: ModuleType, files: list[str], batch_size: int, **reader: Any) -> Any:
    @dali.pipeline_def(batch_size=batch_size, num_threads=1, device_id=None, seed=1)
    def numbers() -> Any:
        return dali.fn.readers.file(files=files, name="Reader", **reader)[1]

    return numbers()


def epochs_of(make: Callable[[], Any], count: int, *, resets: bool) -> tuple[list[Any], list[int]]:
    loader = make()
    epochs, lengths = [], []
    for _ in range(count):
        lengths.append(len(loader))
        epochs.append([[part["x"].flatten().tolist() for part in batch] for batch in loader])
        if resets:
            loader.reset()
    return epochs, lengths


def both(
    rival: Any,
    files: list[str],
    batch_size: int,
    shards: int,
    pipes: int,
    reader: dict[str, Any],
    options: dict[str, Any],
    resets: bool = True,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    import nvidia.dali

    results = []
    for dali, plugin, policies in ((dalify, None, LastBatchPolicy), (nvidia.dali, rival, rival.LastBatchPolicy)):
        kind = DALIGenericIterator if plugin is None else plugin.DALIGenericIterator
        policy = policies[options["last_batch_policy"].name]
        given = {**options, "last_batch_policy": policy}

        def make(dali: Any = dali, kind: Any = kind, given: Any = given) -> Any:
            made = [
                pipeline(dali, files, batch_size, shard_id=shard, num_shards=shards, **reader) for shard in range(pipes)
            ]
            return kind(made, ["x"], **given)

        results.append(epochs_of(make, EPOCHS, resets=resets))
    return results[0], results[1]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize(("size", "batch_size"), [(7, 2), (8, 2), (7, 3), (5, 4), (6, 5), (3, 3), (3, 8)])
def test_reader_gives_the_samples_of_dali(
    rival: Any, numbered_files: list[str], policy: LastBatchPolicy, pad: bool, size: int, batch_size: int
) -> None:
    if policy is LastBatchPolicy.DROP and size < batch_size:
        pytest.skip("the real DALI refuses an epoch without a full batch")
    options = {"reader_name": "Reader", "last_batch_policy": policy}
    ours, theirs = both(rival, numbered_files[:size], batch_size, 1, 1, {"pad_last_batch": pad}, options)
    assert ours == theirs


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize(("pad", "stick"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(
    ("size", "batch_size", "shards", "pipes"), [(7, 2, 3, 1), (7, 2, 2, 2), (17, 4, 3, 2), (16, 3, 2, 2)]
)
def test_shards_give_the_samples_of_dali(
    rival: Any,
    numbered_files: list[str],
    policy: LastBatchPolicy,
    pad: bool,
    stick: bool,
    size: int,
    batch_size: int,
    shards: int,
    pipes: int,
) -> None:
    reader = {"pad_last_batch": pad, "stick_to_shard": stick}
    options = {"reader_name": "Reader", "last_batch_policy": policy}
    ours, theirs = both(rival, numbered_files[:size], batch_size, shards, pipes, reader, options)
    assert ours == theirs


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize(("size", "batch_size", "pipes"), [(7, 2, 1), (8, 2, 1), (7, 2, 2), (5, 2, 2)])
def test_size_gives_the_samples_of_dali(
    rival: Any, numbered_files: list[str], policy: LastBatchPolicy, pad: bool, size: int, batch_size: int, pipes: int
) -> None:
    options = {"size": size, "last_batch_padded": pad, "last_batch_policy": policy}
    ours, theirs = both(rival, numbered_files[:size], batch_size, pipes, pipes, {"pad_last_batch": pad}, options)
    assert ours[0] == theirs[0]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize(
    ("auto_reset", "resets"), [("yes", False), (True, False), (False, False), ("no", True), (None, True)]
)
def test_auto_reset(
    rival: Any, numbered_files: list[str], policy: LastBatchPolicy, auto_reset: Any, resets: bool
) -> None:
    options = {"reader_name": "Reader", "last_batch_policy": policy, "auto_reset": auto_reset}
    ours, theirs = both(rival, numbered_files[:7], 2, 1, 1, {}, options, resets=resets)
    assert ours[0] == theirs[0]


def test_tables_of_seven_samples(numbered_files: list[str]) -> None:
    """Fixed numbers, for machines without the real DALI."""
    expected = {
        (LastBatchPolicy.FILL, False): [
            [[0, 1], [2, 3], [4, 5], [6, 0]],
            [[1, 2], [3, 4], [5, 6]],
            [[0, 1], [2, 3], [4, 5], [6, 0]],
        ],
        (LastBatchPolicy.FILL, True): [[[0, 1], [2, 3], [4, 5], [6, 6]]] * 3,
        (LastBatchPolicy.DROP, False): [[[0, 1], [2, 3], [4, 5]], [[1, 2], [3, 4], [5, 6]], [[2, 3], [4, 5], [6, 0]]],
        (LastBatchPolicy.DROP, True): [[[0, 1], [2, 3], [4, 5]]] * 3,
        (LastBatchPolicy.PARTIAL, False): [
            [[0, 1], [2, 3], [4, 5], [6]],
            [[1, 2], [3, 4], [5, 6], [0]],
            [[2, 3], [4, 5], [6, 0], [1]],
        ],
        (LastBatchPolicy.PARTIAL, True): [[[0, 1], [2, 3], [4, 5], [6]]] * 3,
    }
    for (policy, pad), epochs in expected.items():
        pipe = pipeline(dalify, numbered_files[:7], 2, pad_last_batch=pad)
        loader = DALIGenericIterator(pipe, ["x"], reader_name="Reader", last_batch_policy=policy)
        found = [[batch[0]["x"].flatten().tolist() for batch in loader] for _ in range(3)]
        assert found == epochs, (policy, pad)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("pad", [False, True])
def test_fresh_epochs_are_equally_long(numbered_files: list[str], policy: LastBatchPolicy, pad: bool) -> None:
    pipe = pipeline(dalify, numbered_files[:7], 2, pad_last_batch=pad)
    loader = DALIGenericIterator(pipe, ["x"], reader_name="Reader", last_batch_policy=policy, fresh_epochs=True)
    found = []
    for _ in range(4):
        assert len(loader) == (3 if policy is LastBatchPolicy.DROP else 4)
        found.append([batch[0]["x"].flatten().tolist() for batch in loader])
    assert all(epoch == found[0] for epoch in found)
    assert len(found[0]) == len(loader)


def test_len_is_the_number_of_batches_that_come(numbered_files: list[str]) -> None:
    for size, batch_size, policy in itertools.product((5, 7, 9), (2, 3, 4), POLICIES):
        loader = DALIGenericIterator(
            pipeline(dalify, numbered_files[:size], batch_size), ["x"], reader_name="Reader", last_batch_policy=policy
        )
        for _ in range(4):
            assert len(loader) == len(list(loader))


def test_len_with_a_size(oracle: ModuleType) -> None:
    """DALI returns 2 for each epoch; the second one has one batch, because the first one took two of its samples."""
    lengths: dict[str, list[tuple[int, int]]] = {}
    for dali, kind in ((dalify, DALIGenericIterator), (oracle, import_module("nvidia.dali.plugin.pytorch"))):
        pipe = dali.pipeline_def(lambda dali=dali: dali.fn.constant(idata=1))(
            batch_size=4, num_threads=1, device_id=None
        )
        make = getattr(kind, "DALIGenericIterator", kind)
        loader = make(pipe, ["x"], size=6, auto_reset=True)
        lengths[dali.__name__] = [(len(loader), len(list(loader))) for _ in range(4)]
    assert lengths["nvidia.dali"] == [(2, 2), (2, 1), (2, 2), (2, 1)]
    assert lengths["dalify"] == [(2, 2), (1, 1), (2, 2), (1, 1)]


def test_every_sample_occurs_equally_often_over_epochs(numbered_files: list[str]) -> None:
    """Without padding, FILL loses and repeats nothing over 7 epochs of 7 samples."""
    loader = DALIGenericIterator(
        pipeline(dalify, numbered_files[:7], 2, random_shuffle=True), ["x"], reader_name="Reader"
    )
    seen = np.concatenate([batch[0]["x"].flatten().numpy() for _ in range(14) for batch in loader])
    assert np.bincount(seen).min() == np.bincount(seen).max()


def test_after_a_break(rival: Any, numbered_files: list[str]) -> None:
    """DALI continues in the old epoch; here ``next`` does this, and ``for`` begins the next epoch."""
    import nvidia.dali

    def broken(dali: ModuleType, kind: Any) -> Any:
        loader = kind(pipeline(dali, numbered_files[:7], 2, pad_last_batch=True), ["x"], reader_name="Reader")
        for _ in loader:
            break
        return loader

    def numbers(batches: Any) -> list[Any]:
        return [batch[0]["x"].flatten().tolist() for batch in batches]

    rest = [[2, 3], [4, 5], [6, 6]]
    assert numbers(broken(nvidia.dali, rival.DALIGenericIterator)) == rest
    loader = broken(dalify, DALIGenericIterator)
    assert numbers(next(loader) for _ in range(len(loader) - 1)) == rest
    assert loader.epoch == 0
    assert numbers(broken(dalify, DALIGenericIterator)) == [[0, 1], *rest]


@pytest.mark.parametrize("reader", [{}, {"seed": 3}])
def test_seeds(rival: Any, numbered_files: list[str], reader: dict[str, int]) -> None:
    import nvidia.dali

    for dali in (dalify, nvidia.dali):

        def orders(dali: ModuleType = dali) -> list[list[int]]:
            @dali.pipeline_def(batch_size=17, num_threads=1, device_id=None)
            def shuffled() -> Any:
                return dali.fn.readers.file(files=numbered_files, random_shuffle=True, **reader)[1]

            pipe = shuffled()
            pipe.build()
            return [pipe.run()[0].as_array().flatten().tolist() for _ in range(2)]

        first, second = orders(), orders()
        assert first[0] != first[1]
        assert (first == second) == bool(reader)


def test_private_attributes_of_the_reader_equal_dali(rival: Any, numbered_files: list[str]) -> None:
    """Training scripts and subclasses read them."""
    import nvidia.dali

    names = ["size_no_pad", "shards_num", "shards_id", "is_stick_to_shard", "shard_sizes_per_gpu", "counter_per_gpu"]
    found = []
    for dali, kind in ((nvidia.dali, rival.DALIGenericIterator), (dalify, DALIGenericIterator)):
        pipe = pipeline(dali, numbered_files[:7], 2, num_shards=2, shard_id=1)
        loader = kind(pipe, ["x"], reader_name="Reader")
        found.append([np.asarray(getattr(loader, f"_{name}")).tolist() for name in names])
        without = kind(pipeline(dali, numbered_files, 2), ["x"], size=4)
        assert not any(hasattr(without, f"_{name}") for name in names[1:])
    assert found[0] == found[1]
