"""Element-wise operators compute samples of different shapes in one call, with the results of single samples."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import fn, types
from dalify.base.errors import DalifyError
from dalify.executor import elementwise_step
from dalify.pipeline.pipeline import parts_of
from dalify.registry import catalog
from dalify.registry.groups import on_groups

RANDOM = np.random.default_rng(3)
Images = list[np.ndarray]


def images_of(*shapes: tuple[int, ...], dtype: Any = np.uint8) -> Images:
    return [RANDOM.integers(0, 250, shape).astype(dtype) for shape in shapes]


RAGGED = images_of((5, 7, 3), (1, 1, 3), (0, 4, 3), (20, 30, 3), (5, 7, 3))
NUMBERS = np.arange(1, 6, dtype=np.float32)


def run(define: Callable[..., Any], images: Images = RAGGED, *, in_block: bool = True, **options: Any) -> Images:
    """Run a pipeline on images, in one block or in a list."""

    @dalify.pipeline_def(batch_size=len(images), num_threads=1, device_id=None, prefetch_queue_depth=1, **options)
    def graph() -> Any:
        x = fn.external_source(lambda: images, layout="HWC")
        x = fn.flip(x, horizontal=0) if in_block else x
        return define(x, fn.external_source(lambda: list(NUMBERS[: len(images)])))

    with graph() as pipe:
        pipe.build()
        for state in parts_of(pipe).builder.engine().stages:
            state.seconds_per_sample = 0.0  # one chunk
        for _ in range(2):
            (found,) = pipe.run()
        return [np.array(found.at(n)) for n in range(len(images))]


CASES: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray, Any], np.ndarray]]] = {
    "cast": (lambda x, _: fn.cast(x, dtype=types.FLOAT), lambda x, _: x.astype(np.float32)),
    "narrower": (
        lambda x, _: fn.cast(fn.cast(x, dtype=types.INT32), dtype=types.INT8),
        lambda x, _: np.minimum(x, 127).astype(np.int8),
    ),
    "constant": (lambda x, _: x * 2, lambda x, _: x.astype(np.int32) * 2),
    "constant first": (lambda x, _: 200.0 - x, lambda x, _: np.float32(200) - x),
    "chain": (lambda x, _: (x / 3.0 - 1.5) * 2.0, lambda x, _: (x / np.float32(3) - np.float32(1.5)) * np.float32(2)),
    "two": (
        lambda x, _: x + fn.cast(x, dtype=types.FLOAT) * 1.5,
        lambda x, _: x + x.astype(np.float32) * np.float32(1.5),
    ),
    "comparison": (lambda x, _: (x > 100) * x, lambda x, _: (x > 100) * x),
    "per sample": (lambda x, number: x * number, lambda x, number: x * np.float32(number)),
    "per sample first": (lambda x, number: number - x, lambda x, number: np.float32(number) - x),
    "function": (lambda x, _: dalify.math.sqrt(x), lambda x, _: np.sqrt(x.astype(np.float32))),
    "copy": (lambda x, _: fn.copy(x), lambda x, _: x),
    "table": (
        lambda x, _: fn.lookup_table(x, keys=[3, 7, 200], values=[1.5, 2, 3], default_value=9, dtype=types.FLOAT),
        lambda x, _: np.select([x == 3, x == 7, x == 200], [1.5, 2, 3], 9).astype(np.float32),
    ),
    "channels": (lambda x, _: x - types.Constant(np.float32([1, 2, 3])), lambda x, _: x - np.float32([1, 2, 3])),
    "channels of each sample": (
        lambda x, number: fn.stack(number, number + 1, number * 2) - x,
        lambda x, number: np.float32([number, number + 1, number * 2]) - x,
    ),
    "channels with more axes": (
        lambda x, number: x + fn.expand_dims(fn.stack(number, number + 1, number * 2), axes=[0, 1]),
        lambda x, number: x + np.float32([number, number + 1, number * 2]),
    ),
    "planes": (  # not one call: the vectors are along another axis
        lambda x, number: x * fn.stack(number, number, number)[:, None, None][:1],
        lambda x, number: x * np.float32(number),
    ),
}  # fmt: skip


@pytest.mark.parametrize("in_block", [True, False])
@pytest.mark.parametrize(("define", "expected"), CASES.values(), ids=CASES)
def test_results(define: Callable[..., Any], expected: Callable[[np.ndarray, Any], np.ndarray], in_block: bool) -> None:
    for found, image, number in zip(run(define, in_block=in_block), RAGGED, NUMBERS, strict=True):
        wanted = expected(image, number)
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    calls: list[int] = []
    kernel = catalog.find(name).kernels["cpu"]
    function = inspect.unwrap(kernel.function)

    def call(*arrays: Any, **named: Any) -> Any:
        calls.append(len(arrays[0]))
        return function(*arrays, **named)

    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    grouped = on_groups(repeats=True)(call)
    monkeypatch.setattr(kernel, "inner", grouped)
    monkeypatch.setattr(kernel, "function", grouped)
    return calls


@pytest.mark.parametrize("in_block", [True, False])
@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("cast", "cast"),
        ("arithmetic", "constant"),
        ("arithmetic", "channels"),
        ("copy", "copy"),
        ("lookup_table", "table"),
    ],
)
def test_one_call_for_a_chunk(name: str, case: str, in_block: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, name)
    run(CASES[case][0], in_block=in_block)
    assert calls == [1, 1]  # two batches


@pytest.mark.parametrize("other", ["rows", "list", "block"])
def test_one_call_for_boxes_without_gaps_between_samples(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, "arithmetic")
    boxes = [np.random.default_rng(n).random((n, 4), np.float32) for n in (20, 0, 50, 12)]

    @dalify.pipeline_def(batch_size=len(boxes), num_threads=1, device_id=None, prefetch_queue_depth=1)
    def graph() -> Any:
        listed = fn.external_source(lambda: boxes, ndim=2, dtype=types.FLOAT)
        rows = fn.bb_flip(listed, ltrb=True, horizontal=0)
        others = {"rows": rows, "list": listed, "block": fn.copy(listed)}
        return rows * others[other], rows

    with graph() as pipe:
        pipe.build()
        for state in parts_of(pipe).builder.engine().stages:
            state.seconds_per_sample = 0.0  # one chunk
        product, rows = pipe.run()
        for n, sample in enumerate(boxes):
            np.testing.assert_array_equal(np.array(product.at(n)), sample * sample)
            np.testing.assert_array_equal(np.array(rows.at(n)), sample)
    assert calls == [1]


def test_scalars_are_not_repeated_for_large_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise_step, "_MAX_REPEATED", 100)
    calls = counted(monkeypatch, "arithmetic")
    define, expected = CASES["per sample"]
    for found, image, number in zip(run(define), RAGGED, NUMBERS, strict=True):
        np.testing.assert_array_equal(found, expected(image, number))
    assert calls == [1] * 8  # two batches of four images with elements


def test_large_samples_of_a_list_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise_step, "_MAX_COPIED_BYTES", 100)
    calls = counted(monkeypatch, "cast")
    images = images_of((5, 7, 3), (6, 7, 3))
    for found, image in zip(run(CASES["cast"][0], images, in_block=False), images, strict=True):
        np.testing.assert_array_equal(found, image.astype(np.float32))
    assert calls == [1, 1, 1, 1]


def test_results_do_not_share_memory_with_inputs_that_are_used() -> None:
    def both(x: Any, _: Any) -> Any:
        y = fn.cast(x, dtype=types.FLOAT)
        return fn.cat(fn.reshape(y * 2, shape=[-1]), fn.reshape(y, shape=[-1]))

    for found, image in zip(run(both), RAGGED, strict=True):
        y = image.astype(np.float32).ravel()
        np.testing.assert_array_equal(found, np.concatenate([y * 2, y]))


def test_a_division_by_zero_names_its_sample() -> None:
    images = images_of((5, 7, 3), (6, 2, 3), (9, 4, 3))
    images = [image + 1 for image in images]
    assert all(image.any() for image in run(lambda x, _: 1000 // x, images))  # gaps between samples do not matter
    images[1][3, 1, 2] = 0
    with pytest.raises(DalifyError, match="zero") as caught:
        run(lambda x, _: 1000 // x, images)
    assert "sample 1 of the batch" in str(caught.value)
