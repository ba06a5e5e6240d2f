"""Operators that process samples of different lengths in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalify
from dalify import fn
from dalify.base.errors import ShapeError
from dalify.pipeline.pipeline import parts_of
from dalify.registry import Kernel, catalog

RANDOM = np.random.default_rng(0)


def boxes_of(*counts: int) -> list[np.ndarray]:
    return [np.sort(RANDOM.random((count, 2, 2)), axis=1).reshape(count, 4).astype(np.float32) for count in counts]


def run(samples: list[np.ndarray], *, threads: int = 1, chunks: bool = False, device: str = "cpu") -> list[np.ndarray]:
    @dalify.pipeline_def(batch_size=len(samples), num_threads=threads, device_id=None if device == "cpu" else 0)
    def graph() -> Any:
        boxes = fn.external_source(source=lambda: samples, ndim=2, dtype=dalify.types.FLOAT)
        boxes = boxes if device == "cpu" else boxes.gpu()
        pasted = fn.bbox_paste(fn.bb_flip(boxes, ltrb=True), ratio=2.0, ltrb=True)
        return fn.bbox_rotate(pasted, angle=30.0, input_shape=[30, 40], remove_threshold=0.0)

    pipe = graph()
    pipe.build()
    try:
        for state in parts_of(pipe).builder.engine().stages:
            state.seconds_per_sample = 1.0 if chunks else 1e-9
        for _ in range(3):
            (batch,) = pipe.run()
        return [np.array(batch.as_cpu().at(n)) for n in range(len(samples))]
    finally:
        pipe.close()


@pytest.fixture
def calls(monkeypatch):
    """The numbers of samples of kernel calls."""
    counts: list[int] = []
    operator = catalog.find("bb_flip")
    original = operator.kernels["cpu"]

    def counted(out, x, *, horizontal, vertical, ltrb):
        counts.append(len(x))
        original.function(out, x, horizontal=horizontal, vertical=vertical, ltrb=ltrb)

    monkeypatch.setitem(operator.kernels, "cpu", Kernel(counted, original.form))
    return counts


def test_one_call_for_a_chunk(calls):
    run(boxes_of(3, 1, 0, 7))
    assert calls[-3:] == [4, 4, 4]


def test_results_of_several_calls_are_not_overwritten():
    """Samples of one shape in each of two calls: the memory of the second call is not that of the first."""
    batches = [[RANDOM.random(shape, np.float32) for shape in ((3, 2), (3, 2), (5, 3), (5, 3))] for _ in range(6)]

    @dalify.pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def graph() -> Any:
        return fn.coord_flip(fn.external_source(source=iter(batches)))

    pipe = graph()
    pipe.build()
    parts_of(pipe).builder.engine().stages[0].seconds_per_sample = 0.0  # one chunk
    results = [pipe.run()[0] for _ in batches]
    for batch, samples in zip(results, batches, strict=True):
        for n, sample in enumerate(samples):
            flipped = np.concatenate([1 - sample[:, :1], sample[:, 1:]], axis=1)
            np.testing.assert_array_equal(batch.at(n), flipped)
    pipe.close()


def test_other_extents_need_another_call(calls):
    samples = [np.zeros(shape, np.float32) for shape in ((3, 4), (2, 4), (2, 8), (1, 8), (5, 4))]

    @dalify.pipeline_def(batch_size=5, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def graph() -> Any:
        return fn.bb_flip(fn.external_source(source=lambda: samples), ltrb=True)

    pipe = graph()
    pipe.build()
    parts_of(pipe).builder.engine().stages[0].seconds_per_sample = 0.0  # one chunk
    (batch,) = pipe.run()
    assert calls == [2, 2, 1]
    for n, sample in enumerate(samples):
        np.testing.assert_array_equal(
            batch.at(n), np.tile(np.float32([1, 0, 1, 0]), sample.size // 4).reshape(sample.shape)
        )
    pipe.close()


@pytest.mark.parametrize("counts", [(3, 1, 0, 7), (2, 2, 2, 2), (0, 0, 0, 0), (4,)])
def test_a_sample_is_the_same_alone(counts, gpu):
    samples = boxes_of(*counts)
    alone = [run([sample])[0] for sample in samples]
    for result in (run(samples), run(samples, threads=2, chunks=True)):
        for one, other in zip(result, alone, strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in zip(run(samples, device=gpu), alone, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_kept_results_never_change():
    counter = iter(range(100))

    @dalify.pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def graph() -> Any:
        return fn.bb_flip(
            fn.external_source(source=lambda: list(fed[next(counter)])), ltrb=True, horizontal=0, vertical=1
        )

    fed = [boxes_of(*RANDOM.integers(0, 5, 3)) for _ in range(20)]
    pipe = graph()
    kept = [pipe.run()[0] for _ in range(15)]
    for batch, samples in zip(kept, fed, strict=False):
        for n, sample in enumerate(samples):
            expected = np.concatenate([sample[:, :1], 1 - sample[:, [3]], sample[:, [2]], 1 - sample[:, [1]]], axis=1)
            np.testing.assert_array_equal(batch.at(n), expected)
    pipe.close()


def test_in_a_branch():
    samples = boxes_of(3, 1, 2)

    @dalify.pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def graph() -> Any:
        boxes = fn.external_source(source=lambda: samples, ndim=2, dtype=dalify.types.FLOAT)
        flag = fn.external_source(source=lambda: np.array([True, False, True]), ndim=0, dtype=dalify.types.BOOL)
        if flag:
            boxes = fn.bb_flip(boxes, ltrb=True)
        return boxes

    pipe = graph()
    (batch,) = pipe.run()
    np.testing.assert_array_equal(batch.at(1), samples[1])
    np.testing.assert_array_equal(batch.at(2)[:, 0], 1 - samples[2][:, 2])
    pipe.close()


def test_errors_name_the_sample():
    boxes, labels = boxes_of(2, 3, 1), [np.zeros(n, np.int32) for n in (2, 4, 1)]

    @dalify.pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def graph() -> Any:
        return tuple(
            fn.bbox_rotate(
                fn.external_source(source=lambda: boxes),
                fn.external_source(source=lambda: labels),
                angle=1.0,
                input_shape=[5, 5],
            )
        )

    pipe = graph()
    with pytest.raises(ShapeError, match=r"got 3 boxes and labels of shape(?s:.)*sample 1 of the batch"):
        pipe.run()
    pipe.close()


def test_single_numbers_are_refused():
    @dalify.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def graph() -> Any:
        labels = fn.external_source(source=lambda: np.zeros(2, np.int32))
        return tuple(fn.box_encoder(fn.external_source(source=lambda: boxes_of(1, 1)), labels, anchors=[0, 0, 1, 1]))

    pipe = graph()
    with pytest.raises(ShapeError, match="scalars cannot be divided into rows"):
        pipe.run()
    pipe.close()


ANCHORS = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.5, 0.5]


def boxes_and_labels(batches: list[list[np.ndarray]]) -> list[Any]:
    """Boxes and labels as rows with the same starts: those of the whole images."""
    fed = iter(batches)

    def next_batch() -> tuple[list[np.ndarray], list[np.ndarray]]:
        boxes = next(fed)
        return boxes, [np.arange(1, len(own) + 1, dtype=np.int32) for own in boxes]

    given = fn.external_source(source=next_batch, num_outputs=2)
    return fn.random_bbox_crop(*given, ltrb=True, thresholds=[0.0], scaling=[1.0, 1.0], seed=1)[2:]


def test_the_rule_runs_once_for_all_numbers_of_rows(monkeypatch):
    batches = [boxes_of(*RANDOM.integers(1, 40, 3)) for _ in range(20)]
    calls: list[Any] = []
    operator = catalog.find("box_encoder")
    rule = operator.rule

    def counted(boxes, labels, **arguments):
        calls.append(boxes.shape)
        return rule(boxes, labels, **arguments)

    @dalify.pipeline_def(batch_size=3, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def graph() -> Any:
        boxes, labels = boxes_and_labels(batches)
        boxes = fn.bb_flip(boxes, ltrb=True)
        return boxes, labels, *fn.box_encoder(boxes, labels, anchors=ANCHORS)

    pipe = graph()
    pipe.build()
    for state in parts_of(pipe).builder.engine().stages:
        state.seconds_per_sample = 0.0  # one chunk
    monkeypatch.setattr(operator, "rule", counted)
    results = [pipe.run() for _ in range(20)]
    assert len(calls) < 15  # of 60 samples
    for boxes, labels, *encoded in results:
        for n in range(3):
            alone = dalify.eager.box_encoder(boxes.at(n), labels.at(n), anchors=ANCHORS)
            for one, other in zip(encoded, alone, strict=True):
                np.testing.assert_array_equal(one.at(n), other)
    pipe.close()


def test_rows_of_other_numbers_are_refused():
    """The rule compares the numbers of rows, which are known to be equal only for some inputs."""
    pairs = [[boxes_of(2, 3, 1)] * 3, [boxes_of(2, 4, 1)] * 3]

    @dalify.pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def graph() -> Any:
        return fn.box_encoder(boxes_and_labels(pairs[0])[0], boxes_and_labels(pairs[1])[1], anchors=ANCHORS)

    pipe = graph()
    with pytest.raises(ShapeError, match="got 3 boxes and labels of shape") as raised:
        pipe.run()
    assert raised.value.sample == 1
    pipe.close()
