"""One test for the iterators of all frameworks: the same samples, epochs, states, masks and collations from each.

What is expected is computed here, from the definition of shards and policies.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.base.errors import (
    ArgumentValueError,
    MissingPackageError,
    PartialBatchError,
    PipelineStateError,
    ShapeError,
)
from dalify.pipeline import Pipeline
from tests.helpers.frameworks import FRAMEWORKS, MISSING, Framework

MOST = 11
EPOCHS = [
    (size, batch, shards, policy)
    for size, batch, shards in [(11, 4, 1), (8, 4, 1), (11, 3, 2), (7, 2, 3), (5, 8, 1)]
    for policy in ["FILL", "DROP", "PARTIAL"]
    if policy != "DROP" or size // shards >= batch  # DALI refuses an epoch without a full batch
]


@pytest.fixture(scope="module", params=[name for name in FRAMEWORKS if name not in MISSING])
def framework(request: pytest.FixtureRequest) -> Framework:
    found = FRAMEWORKS[request.param]
    found.module()
    return found


@pytest.mark.skipif(bool(MISSING), reason=f"not installed here: {', '.join(MISSING)}; make test-frameworks runs them")
def test_the_page_lists_every_framework() -> None:
    """One line lists all tests that are omitted in this folder, here and in conftest.py."""
    for framework in FRAMEWORKS.values():
        assert framework.is_installed


@pytest.fixture(scope="module")
def files(numbered_files: list[str]) -> list[str]:
    return numbered_files[:MOST]


def numbers(files: list[str], size: int, batch_size: int, **reader: Any) -> Pipeline:
    @pipeline_def(batch_size=batch_size, num_threads=1)
    def read() -> Any:
        _, labels = fn.readers.file(files=files[:size], name="Reader", **reader)
        return fn.cast(labels, dtype=types.INT32)

    return read()


def expected(size: int, batch: int, shard: int, shards: int, policy: str, padded: bool) -> list[list[int]]:
    """Return the batches of an epoch with ``stick_to_shard``."""
    rows = [list(range(size * k // shards, size * (k + 1) // shards)) for k in range(shards)]
    own = rows[shard]
    if policy == "DROP":
        return [own[k * batch : (k + 1) * batch] for k in range(min(map(len, rows)) // batch)]
    count = math.ceil(max(map(len, rows)) / batch)
    if policy == "PARTIAL":
        return [own[k * batch : (k + 1) * batch] for k in range(count)]
    filled = own + [own[-1]] * (count * batch) if padded else own * (count * batch)
    return [filled[k * batch : (k + 1) * batch] for k in range(count)]


def given(framework: Framework, loader: Any) -> list[list[int]]:
    return [framework.parts(batch, ["x"])[0]["x"].ravel().tolist() for batch in loader]


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("size", "batch", "shards", "policy"), EPOCHS)
def test_epochs(
    framework: Framework, files: list[str], size: int, batch: int, shards: int, policy: str, padded: bool
) -> None:
    for shard in range(shards):
        pipe = numbers(
            files, size, batch, shard_id=shard, num_shards=shards, pad_last_batch=padded, stick_to_shard=True
        )
        options = {"reader_name": "Reader", "last_batch_policy": policy, "fresh_epochs": True, "auto_reset": True}
        loader = framework.loader(pipe, ["x"], **options)
        wanted = expected(size, batch, shard, shards, policy, padded)
        for _ in range(2):
            assert len(loader) == len(wanted)
            assert given(framework, loader) == wanted
        pipe.close()


def test_an_epoch_with_samples_of_the_next_epoch(framework: Framework, files: list[str]) -> None:
    # Eleven samples in batches of four: the third batch has the first sample of the next epoch, which then has ten.
    loader = framework.loader(numbers(files, 11, 4), ["x"], reader_name="Reader", auto_reset=True)
    endless = list(range(11)) * 3
    assert [given(framework, loader) for _ in range(2)] == [
        [endless[k : k + 4] for k in (0, 4, 8)],
        [endless[k : k + 4] for k in (12, 16, 20)],
    ]


def test_size(framework: Framework) -> None:
    @pipeline_def(batch_size=3, num_threads=1)
    def counted() -> Any:
        return fn.external_source(source=lambda info: np.array([info.idx_in_epoch], np.int32), batch=False)

    loader = framework.loader(counted(), ["x"], size=6)
    assert len(loader) == 2
    assert given(framework, loader) == [[0, 1, 2], [3, 4, 5]]


def test_threads_share_an_epoch(framework: Framework, files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch is returned to one thread, and the epoch ends for all."""

    def slowly() -> Any:
        time.sleep(0.01)
        return next_outputs()

    def read() -> None:
        while len(found) < 10 and (batch := next(loader, None)) is not None:
            found.append(framework.parts(batch, ["x"])[0]["x"].ravel().tolist())

    pipe = numbers(files, 9, 3)
    next_outputs = pipe.next_outputs
    loader = framework.loader(pipe, ["x"], reader_name="Reader")
    monkeypatch.setattr(pipe, "next_outputs", slowly)
    found: list[list[int]] = []
    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_until_the_source_ends(framework: Framework) -> None:
    @pipeline_def(batch_size=3, num_threads=1)
    def counted() -> Any:
        batches = [np.arange(3, dtype=np.int32), np.arange(3, 5, dtype=np.int32)]
        return fn.external_source(source=batches, cycle="raise")

    loader = framework.loader(counted(), ["x"])
    for _ in range(2):
        assert given(framework, loader) == [[0, 1, 2], [3, 4]]
        loader.reset()


@pytest.mark.parametrize("taken", [0, 1, 3, 4])
def test_resume(framework: Framework, files: list[str], taken: int) -> None:
    def loader() -> Any:
        pipe = numbers(files, 11, 3, pad_last_batch=True)
        return framework.loader(pipe, ["x"], reader_name="Reader", last_batch_policy="PARTIAL", auto_reset=True)

    first = loader()
    wanted = expected(11, 3, 0, 1, "PARTIAL", True)
    found = [framework.parts(next(first), ["x"])[0]["x"].ravel().tolist() for _ in range(taken)]
    state = json.loads(json.dumps(first.state_dict()))
    second = loader()
    second.load_state_dict(state)
    assert found + given(framework, second) == wanted
    assert given(framework, second) == wanted


def test_valid_name(framework: Framework, files: list[str]) -> None:
    pipe = numbers(files, 7, 4, pad_last_batch=True)
    loader = framework.loader(pipe, ["x"], reader_name="Reader", valid_name="valid")
    masks = [framework.parts(batch, ["x", "valid"])[0]["valid"].tolist() for batch in loader]
    assert masks == [[True] * 4, [True] * 3 + [False]]


@pytest.mark.parametrize("way", ["list", "pad", "packed"])
def test_collate(framework: Framework, way: str) -> None:
    samples = [np.arange(rows * 2, dtype=np.float32).reshape(rows, 2) + 1 for rows in (3, 1, 0, 4)]

    @pipeline_def(batch_size=4, num_threads=1)
    def ragged() -> Any:
        return fn.external_source(source=lambda: samples)

    batch = next(framework.loader(ragged(), ["x"], collate={"x": way}))
    found = framework.parts(batch, ["x"])[0]["x"]
    if way == "list":
        for got, sample in zip(found, samples, strict=True):
            np.testing.assert_array_equal(got, sample)
    elif way == "pad":
        np.testing.assert_array_equal(found, [np.pad(sample, ((0, 4 - len(sample)), (0, 0))) for sample in samples])
    else:
        values, offsets = found
        np.testing.assert_array_equal(values, np.concatenate(samples))
        assert offsets.tolist() == [0, 3, 4, 4, 8]


def test_a_source_that_ends_early_names_the_output(framework: Framework) -> None:
    @pipeline_def(batch_size=3, num_threads=1)
    def short() -> Any:
        batches = [np.arange(3, dtype=np.int32), np.arange(3, 5, dtype=np.int32)]
        return fn.external_source(source=batches)

    loader = framework.loader(short(), ["boxes"], size=9)
    assert framework.parts(next(loader), ["boxes"])[0]["boxes"].tolist() == [0, 1, 2]
    with pytest.raises(PartialBatchError, match="the output 'boxes' has 2 samples instead of 3"):
        next(loader)


def test_ragged_samples_name_the_output(framework: Framework) -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def ragged() -> Any:
        return fn.external_source(source=lambda: [np.zeros(1, np.float32), np.zeros(2, np.float32)])

    with pytest.raises(ShapeError, match="'boxes' have different shapes"):
        next(framework.loader(ragged(), ["boxes"]))


TYPES = [np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64, np.bool_]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 3), (33, 17, 3)], ids=str)
def test_element_types(framework: Framework, dtype: Any, shape: tuple[int, ...]) -> None:
    values = np.arange(2 * math.prod(shape)).reshape(2, *shape).astype(dtype)

    @pipeline_def(batch_size=2, num_threads=1)
    def typed() -> Any:
        return fn.external_source(source=lambda: values)

    found = framework.parts(next(framework.loader(typed(), ["x"])), ["x"])[0]["x"]
    assert found.shape == values.shape
    # JAX has 32-bit types for these unless configured otherwise.
    narrow = {np.int64: np.int32, np.float64: np.float32} if framework.plugin == "jax" else {}
    assert found.dtype == narrow.get(dtype, dtype)
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("way", ["dense", "list", "pad", "packed"])
def test_outputs_on_a_device(framework: Framework, emulated_gpu: None, way: str) -> None:
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    @pipeline_def(batch_size=2, num_threads=1)
    def moved() -> Any:
        return fn.external_source(source=lambda: values).gpu() * 2

    batch = next(framework.loader(moved(), ["x"], collate=way, valid_name="valid"))
    found = framework.parts(batch, ["x", "valid"])[0]["x"]
    if way == "packed":
        np.testing.assert_array_equal(found[0], values.reshape(6, 4) * 2)
        assert found[1].tolist() == [0, 3, 6]
    else:
        np.testing.assert_array_equal(found, values * 2)


def test_batches_may_be_kept(framework: Framework) -> None:
    @pipeline_def(batch_size=2, num_threads=2)
    def counted() -> Any:
        return fn.external_source(
            source=lambda info: np.full((64, 64), info.idx_in_epoch, np.float32), batch=False
        ) * np.float32(2)

    loader = framework.loader(counted(), ["x"])
    kept = [next(loader) for _ in range(12)]
    for number, batch in enumerate(kept):
        found = framework.parts(batch, ["x"])[0]["x"]
        np.testing.assert_array_equal(found[:, 0, 0], [4 * number, 4 * number + 2])
        assert np.ptp(found, axis=(1, 2)).max() == 0


def test_two_pipelines(framework: Framework, files: list[str]) -> None:
    pipes = [numbers(files, 8, 2, shard_id=shard, num_shards=2, stick_to_shard=True) for shard in range(2)]
    loader = framework.loader(pipes, ["x"], reader_name="Reader")
    batches = list(loader)
    assert len(batches) == 2
    if framework.gives_one:
        assert [np.asarray(batch["x"]).ravel().tolist() for batch in batches] == [[0, 1, 4, 5], [2, 3, 6, 7]]
    else:
        parts = [[part["x"].ravel().tolist() for part in framework.parts(batch, ["x"])] for batch in batches]
        assert parts == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]


def test_a_function_must_not_use_the_iterator_of_its_pipeline(framework: Framework) -> None:
    """It would wait for itself."""

    def function(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if x == 1:
            next(loader)
        return x

    @pipeline_def(batch_size=2, num_threads=1)
    def calling() -> Any:
        batches = fn.external_source(lambda number: np.full(2, number, np.int32))
        return fn.python_function(batches, function=function)

    loader = framework.loader(calling(), ["x"])
    assert framework.parts(next(loader), ["x"])[0]["x"].ravel().tolist() == [0, 0]
    with pytest.raises(PipelineStateError, match="the function uses the pipeline that is calling it"):
        next(loader)
    assert framework.parts(next(loader), ["x"])[0]["x"].ravel().tolist() == [2, 2]


def test_mistakes(framework: Framework, files: list[str]) -> None:
    pipe = numbers(files, 8, 2)
    for names, options, text in (
        (["x", "y"], {}, "output_map has 2 names"),
        (["x"], {"collate": "padded"}, "collate must be one of dense, pad, list, packed"),
        (["x"], {"valid_name": "x"}, "already the name of an output"),
        (["x"], {"reader_name": "Reader", "size": 3}, "mutually exclusive"),
    ):
        with pytest.raises(ArgumentValueError, match=text):
            framework.loader(pipe, names, **options)


@pytest.mark.parametrize(
    ("plugin", "package", "install"),
    [
        ("jax", "jax", "dalify[jax]"),
        ("tf", "tensorflow", "dalify[tensorflow]"),
        ("paddle", "paddle", "dalify[paddle]"),
    ],
)
def test_a_missing_framework_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, plugin: str, package: str, install: str
) -> None:
    for name in list(sys.modules):
        if name == package or name.startswith((f"{package}.", f"dalify.plugin.{plugin}.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"dalify.plugin.{plugin}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"dalify\.plugin\.{plugin} needs the package '{package}'") as caught:
        importlib.import_module(f"dalify.plugin.{plugin}")
    assert f"pip install '{install}'" in str(caught.value)
