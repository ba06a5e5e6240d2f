"""Shapes of results of ragged chunks: rules that only copy extents run once, others for each sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import fn
from dalify.base.errors import DalifyError, LimitError
from dalify.data import DALIDataType, Spec
from dalify.data.batch import block_offsets
from dalify.executor.shape_table import ShapeTable
from dalify.executor.shape_trace import trace_shapes
from dalify.registry import catalog

SHAPES = np.array([[4, 7, 3], [5, 7, 3], [6, 7, 3]], np.int64)
OPEN = Spec(DALIDataType.UINT8, 3, "HWC")


def traced(rule: Callable[[Spec], Spec], shapes: np.ndarray = SHAPES) -> Any:
    found = trace_shapes(lambda specs: (rule(specs[0]),), [OPEN], [ShapeTable(shapes).extents])  # pyright: ignore
    result = None if found is None else found.shapes([ShapeTable(shapes)], len(shapes))[0]
    return result.shapes if isinstance(result, ShapeTable) else result


def test_extents_of_a_table() -> None:
    assert ShapeTable(SHAPES).extents == (-1, 7, 3)
    assert ShapeTable(SHAPES[:1]).extents == (4, 7, 3)
    assert ShapeTable(SHAPES[:1]).is_uniform
    assert not ShapeTable(SHAPES).is_uniform


@pytest.mark.parametrize("count", [1, 2, 37])
@pytest.mark.parametrize("ndim", [0, 1, 3])
@pytest.mark.parametrize("item_bytes", [1, 2, 8])
def test_a_table_agrees_with_numpy(count: int, ndim: int, item_bytes: int) -> None:
    random = np.random.default_rng(count + ndim)
    for lowest in (0, 1):
        shapes = random.integers(lowest, 60, (count, ndim))
        table = ShapeTable(shapes)
        sizes = shapes.prod(1)
        assert table.largest == int(np.argmax(sizes))
        assert table.most_elements == sizes.max()
        assert table.is_full == bool(shapes.all())
        offsets, size_bytes = table.block_offsets(item_bytes)
        expected, expected_bytes = block_offsets(shapes, item_bytes)
        np.testing.assert_array_equal(offsets, expected)
        assert size_bytes == expected_bytes


def test_a_table_of_views_and_of_sizes_beyond_64_bits() -> None:
    shapes = np.broadcast_to(np.array([5, 7], np.int64), (3, 2))
    assert ShapeTable(shapes).block_offsets(4)[0].tolist() == [0, 192, 384]
    table = ShapeTable(np.array([[9, 9], [1 << 40, 1 << 40], [9, 8]], np.int64))
    assert table.largest == 1
    assert table.most_elements == 1 << 62


def test_extents_that_are_copied() -> None:
    np.testing.assert_array_equal(traced(lambda x: x), SHAPES)
    np.testing.assert_array_equal(traced(lambda x: x.replace(dtype=DALIDataType.FLOAT)), SHAPES)
    swapped = traced(lambda x: x.replace(shape=(x.shape[1], x.shape[0], 1, x.shape[0])))  # pyright: ignore
    np.testing.assert_array_equal(swapped, np.array([[7, h, 1, h] for h in (4, 5, 6)]))
    assert traced(lambda x: x.replace(shape=(x.shape[1] * 2, 9))) == (14, 9)  # pyright: ignore


def test_first_extents_that_are_known_to_be_equal() -> None:
    def rule(specs: tuple[Any, ...]) -> tuple[Spec, ...]:
        assert specs[0].shape[0] == specs[1].shape[0]
        return (specs[1],)

    specs, extents = [Spec(DALIDataType.FLOAT, 2)] * 2, [(-1, 4), (-1, 1)]
    found = trace_shapes(rule, specs, extents, [0, 0])
    assert found is not None
    assert [(source, columns.tolist(), fixed.tolist()) for source, columns, fixed in found.copies[0]] == [
        (0, [0, -1], [-1, 1])
    ]
    assert trace_shapes(rule, specs, extents, [0, 1]) is None
    assert trace_shapes(rule, specs, extents) is None


COMPUTED: dict[str, Callable[[Any], Any]] = {
    "sum": lambda shape: (shape[0] + 1,),
    "product": lambda shape: (2 * shape[0],),
    "comparison": lambda shape: (1 if shape[0] < 5 else 2,),
    "equality": lambda shape: (1 if shape[0] == 5 else 2,),
    "truth": lambda shape: (1 if shape[0] else 2,),
    "maximum": lambda shape: (max(shape[0], 5),),
    "membership": lambda shape: (1 if 5 in shape else 2,),
    "float": lambda shape: (int(np.float32(shape[0])),),
    "numpy": lambda shape: tuple(np.array(shape) + 1),
    "dictionary": lambda shape: ({4: 1}.get(shape[0], 2),),
    "range": lambda shape: (len(range(shape[0])),),
    "text": lambda shape: (len(f"{shape[0]}"),),
    "unknown": lambda shape: None,
}


@pytest.mark.parametrize("compute", COMPUTED.values(), ids=COMPUTED)
def test_rules_that_compute_with_extents_run_for_each_sample(compute: Callable[[Any], Any]) -> None:
    assert traced(lambda x: Spec(x.dtype, shape=compute(x.shape)) if compute(x.shape) else x.replace(ndim=2)) is None


def test_one_call_of_the_rule_for_any_number_of_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    operator = catalog.find("color_twist")
    rule = operator.rule

    def counted(x: Spec, **arguments: Any) -> Any:
        calls.append(x.shape)
        return rule(x, **arguments)

    random = np.random.default_rng(1)

    @dalify.pipeline_def(batch_size=12, num_threads=1, device_id=None)
    def graph() -> Any:
        images = fn.external_source(
            lambda: [np.ones((*random.integers(1, 50, 2), 3), np.uint8) for _ in range(12)],
            layout="HWC",
            ndim=3,
            dtype=dalify.types.UINT8,
        )
        return images, fn.color_twist(images, brightness=2.0)

    with graph() as pipe:
        pipe.build()
        monkeypatch.setattr(operator, "rule", counted)
        for _ in range(20):
            before, after = pipe.run()
            for n in range(12):
                np.testing.assert_array_equal(after.at(n), np.asarray(before.at(n)) * 2)
    assert len(calls) < 30


@pytest.mark.parametrize("empty", [False, True])
def test_sizes_are_checked_for_each_chunk(empty: bool) -> None:
    """Chunks of different shapes share a plan, but not the check."""
    heights = iter([(3, 4), (5, 6), (1000, 7)])

    def images() -> Any:
        # The other extents of empty samples must be within the limits, too.
        return [np.ones((0 if empty else height, height, 3), np.uint8) for height in next(heights)]

    @dalify.pipeline_def(batch_size=2, num_threads=1, device_id=None, limits={"max_sample_bytes": 10_000})
    def graph() -> Any:
        return fn.color_twist(fn.external_source(images, layout="HWC"), dtype=dalify.types.FLOAT)

    with graph() as pipe:
        for number in range(2):
            (found,) = pipe.run()
            assert found.at(1).shape == ((0 if empty else (4, 6)[number]), (4, 6)[number], 3)
        with pytest.raises(LimitError, match=r"1000 x 3.*max_sample_bytes"):
            pipe.run()


def test_plans_of_different_extents_and_numbers_of_samples() -> None:
    """Each chunk has other extents, some of them equal in all of its samples, and the last a single shape."""
    random = np.random.default_rng(1)
    batches = [
        [random.random(shape, np.float32) for shape in shapes]
        for shapes in (
            [(3, 5), (4, 5), (6, 5)],
            [(3, 7), (4, 7), (6, 7)],
            [(3, 5), (4, 6), (6, 7)],
            [(9, 5), (8, 5), (6, 5)],
            [(9, 5), (8, 5)],
            [(9, 5), (9, 5), (9, 5)],
            [(3, 5), (4, 5), (6, 5)],
        )
    ]
    given = iter(batches)

    @dalify.pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def graph() -> Any:
        data = fn.external_source(lambda: next(given))
        return fn.transpose(fn.to_decibels(data, multiplier=1.0), perm=[1, 0])

    with graph() as pipe:
        for batch in batches:
            (found,) = pipe.run()
            assert len(found) == len(batch)
            for n, sample in enumerate(batch):
                np.testing.assert_allclose(found.at(n), np.log10(np.maximum(sample / sample.max(), 1e-20)).T, atol=1e-5)


def test_an_error_of_one_shape_names_its_sample() -> None:
    @dalify.pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def graph() -> Any:
        images = fn.external_source(
            lambda: [np.ones((4, 5 + n, 2 if n == 1 else 3), np.uint8) for n in range(3)], layout="HWC"
        )
        return fn.color_twist(images, brightness=2.0)

    with graph() as pipe, pytest.raises(DalifyError, match="sample 1 of the batch"):
        pipe.run()
