"""Reductions compared with NumPy in float64, and with the real DALI."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify.data.dtypes import DALIDataType, from_numpy
from dalify.data.samples import Samples
from dalify.kernels.arrays import reduce, reduce_torch

INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


def reduced_shape(x: np.ndarray, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for axis, extent in enumerate(x.shape) if axis == 0 or axis - 1 not in axes)


def apply(name: str, x: np.ndarray, axes: tuple[int, ...], dtype: Any = np.float32, **arguments: Any) -> np.ndarray:
    out = np.empty(reduced_shape(x, axes), dtype)
    inputs = [x, arguments.pop("mean")] if "mean" in arguments else [x]
    getattr(reduce, name)(Samples.of_dense(out), *map(Samples.of_dense, inputs), axes, **arguments)
    return out


@settings(deadline=None, max_examples=60)
@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple),
    dtype=st.sampled_from(["uint8", "int16", "float32", "float64", "int64", "bool"]),
    data=st.data(),
)
def test_reductions_equal_numpy(shape: tuple[int, ...], dtype: str, data: st.DataObject) -> None:
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1))))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.integers(0, 2 if dtype == "bool" else 100, (2, *shape)).astype(dtype)
    wide, over = x.astype(np.float64), tuple(axis + 1 for axis in axes)
    np.testing.assert_array_equal(apply("total", x, axes, np.int64), wide.sum(axis=over))
    np.testing.assert_allclose(apply("mean", x, axes), wide.mean(axis=over), rtol=1e-6)
    np.testing.assert_allclose(apply("mean_square", x, axes), (wide**2).mean(axis=over), rtol=1e-6)
    np.testing.assert_allclose(apply("rms", x, axes), np.sqrt((wide**2).mean(axis=over)), rtol=1e-6)
    np.testing.assert_array_equal(apply("minimum", x, axes, x.dtype), x.min(axis=over))
    np.testing.assert_array_equal(apply("maximum", x, axes, x.dtype), x.max(axis=over))
    center = wide.mean(axis=over).astype(np.float32)
    got = apply("std_dev", x, axes, mean=center)
    np.testing.assert_allclose(got, wide.std(axis=over), rtol=1e-5, atol=1e-4)
    kept = np.expand_dims(center, over)
    np.testing.assert_array_equal(apply("std_dev", x, axes, mean=kept), got)


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 1), (2,), (0, 2), (0,)])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_images(axes: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 256, (2, 64, 48, 3)).astype(dtype)
    over = tuple(axis + 1 for axis in axes)
    np.testing.assert_allclose(apply("mean", x, axes), x.mean(axis=over, dtype=np.float64), rtol=1e-6)
    np.testing.assert_array_equal(apply("maximum", x, axes, dtype), x.max(axis=over))
    np.testing.assert_array_equal(apply("minimum", x, axes, dtype), x.min(axis=over))
    got = apply("variance", x, axes, mean=np.array([100.0, 20.0], np.float32), ddof=1)
    center = np.array([100.0, 20.0])[:, None, None, None]
    count = x[0].size // got[0].size
    np.testing.assert_allclose(got, ((x - center) ** 2).sum(axis=over) / (count - 1), rtol=1e-6)


def test_large_integers_add_up_exactly() -> None:
    x = np.full((1, 1000), 2**62 + 1, np.int64)
    assert apply("total", x, (0,), np.int64)[0] == (1000 * (2**62 + 1) + 2**63) % 2**64 - 2**63
    assert apply("total", np.full((1, 3), 200, np.uint8), (0,), np.uint8)[0] == 600 % 256


def test_nothing_to_reduce() -> None:
    empty = np.empty((1, 0, 2), np.float32)
    assert apply("total", empty, (0,)).tolist() == [[0, 0]]
    assert np.isnan(apply("mean", empty, (0,))).all()
    assert (apply("maximum", empty, (0,)) == np.finfo(np.float32).min).all()
    assert apply("minimum", np.empty((1, 0), np.uint8), (0,), np.uint8).tolist() == [255]
    assert apply("mean", empty, (1,)).shape == (1, 0)


def test_extremes_ignore_nan() -> None:
    x = np.array([[1, np.nan, 3], [np.nan, 1, np.inf]], np.float32)
    assert apply("maximum", x, (0,)).tolist() == [3, np.inf]
    assert apply("minimum", x, (0,)).tolist() == [1, 1]


# Short rows, rows of several partial extrema, and rows that are no multiple of them.
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(7, 1), (7, 3), (5, 64), (5, 65), (3, 1027), (4, 720, 3), (2, 33, 70), (2, 9, 1)])
@pytest.mark.parametrize("axis", [0, 1])
def test_lengths_of_rows(shape: tuple[int, ...], dtype: str, axis: int) -> None:
    x = np.random.default_rng(1).integers(0, 120, (2, *shape)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[0, 0] = np.nan
        x[1, :, 0] = np.nan
        x[1, -1] = np.inf
    wide = None if np.dtype(dtype).kind == "f" else np.int64
    np.testing.assert_array_equal(apply("maximum", x, (axis,), dtype), np.fmax.reduce(x, axis + 1))
    np.testing.assert_array_equal(apply("minimum", x, (axis,), dtype), np.fmin.reduce(x, axis + 1))
    with np.errstate(invalid="ignore"):
        total = apply("total", x, (axis,), wide or dtype)
        np.testing.assert_allclose(total, x.sum(axis=axis + 1, dtype=wide or np.float64), rtol=1e-6)


@pytest.mark.parametrize("values", [3, 128, 129, 500])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_extremes_of_short_and_long_rows(name: str, dtype: str, values: int) -> None:
    rng = np.random.default_rng(values)
    x = rng.choice([np.nan, -np.inf, np.inf, -1.0, 2.0], (2, 40, values, 2), p=[0.6, 0.1, 0.1, 0.1, 0.1]).astype(dtype)
    x[0, 0], x[0, 1], x[1, 0, 0], x[1, 0, 1:] = np.nan, -np.inf, np.nan, np.inf
    expected = {"minimum": np.fmin, "maximum": np.fmax}[name]
    for axis in (1, 2, 3):
        np.testing.assert_array_equal(apply(name, x, (axis - 1,), dtype), expected.reduce(x, axis=axis))


@pytest.mark.parametrize("values", [1, 3, 64, 65, 500])
@pytest.mark.parametrize("dtype", ["uint16", "int16", "int32", "int64"])
def test_integers_of_short_and_long_rows(dtype: str, values: int) -> None:
    info = np.iinfo(dtype)
    x = np.random.default_rng(values).integers(info.min, info.max, (2, 7, values, 3), dtype, endpoint=True)
    for axis in (1, 2, 3):
        wide = np.int64 if info.min else np.uint64
        np.testing.assert_array_equal(apply("total", x, (axis - 1,), wide), x.sum(axis=axis, dtype=wide))
        np.testing.assert_array_equal(apply("minimum", x, (axis - 1,), dtype), x.min(axis=axis))
        np.testing.assert_array_equal(apply("maximum", x, (axis - 1,), dtype), x.max(axis=axis))


def test_result_types() -> None:
    for name in INTEGERS:
        dtype = from_numpy(name)
        assert reduce.reduced_dtype("sum", dtype) == (DALIDataType.INT64 if dtype.is_signed else DALIDataType.UINT64)
        assert reduce.reduced_dtype("mean", dtype) == DALIDataType.FLOAT
        assert reduce.reduced_dtype("max", dtype) == dtype
    assert reduce.reduced_dtype("sum", DALIDataType.BOOL) == DALIDataType.UINT64
    assert reduce.reduced_dtype("sum", DALIDataType.FLOAT16) == DALIDataType.FLOAT
    assert reduce.reduced_dtype("variance", DALIDataType.FLOAT64) == DALIDataType.FLOAT64
    assert reduce.reduced_dtype("mean", DALIDataType.UINT8, DALIDataType.UINT8) == DALIDataType.UINT8


def test_reductions_equal_dali() -> None:
    nvidia, fn = pytest.importorskip("nvidia.dali"), pytest.importorskip("nvidia.dali.fn")
    types = pytest.importorskip("nvidia.dali.types")
    names = {"sum": "total", "min": "minimum", "max": "maximum"}
    rng = np.random.default_rng(3)
    arrays = [rng.integers(0, 100, (4, 5, 3)).astype(name) for name in [*INTEGERS, "float32"]]
    cases: list[tuple[str, np.ndarray, tuple[int, ...]]] = []
    pipe = nvidia.Pipeline(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    outputs = []
    with pipe:
        for array in arrays:
            node = _source(fn, array)
            for axes in [(0, 1, 2), (0, 1), (2,), (0, 2)]:
                for name in ["sum", "mean", "mean_square", "rms", "min", "max"]:
                    outputs.append(getattr(fn.reductions, name)(node, axes=list(axes)))
                    cases.append((name, array, axes))
                for name in ["std_dev", "variance"]:
                    # Not one mean for several results, for which DALI reads beyond its end.
                    center = fn.reductions.mean(node, axes=list(axes))
                    outputs.append(getattr(fn.reductions, name)(node, center, axes=list(axes), ddof=1))
                    cases.append((name, array, axes))
        for name in ["sum", "mean", "rms"]:
            # DALI adds up in the requested type: only sums that fit it can be compared.
            source = arrays[0] if name == "sum" else np.array([1, 2, 4, 6], np.uint8)
            outputs.append(getattr(fn.reductions, name)(_source(fn, source), dtype=types.UINT8))
        pipe.set_outputs(*outputs)
    pipe.build()
    results = [np.array(output[0]) for output in pipe.run()]
    for (name, array, axes), expected in zip(cases, results, strict=False):
        dtype = reduce.reduced_dtype(name, from_numpy(array.dtype)).numpy
        assert expected.dtype == dtype, (name, array.dtype)
        spread = {"mean": array.mean(axis=axes)[None], "ddof": 1} if name in ("std_dev", "variance") else {}
        got = apply(names.get(name, name), array[None], axes, dtype, **spread)[0]
        np.testing.assert_allclose(got, expected, rtol=1e-5, err_msg=f"{name} {array.dtype} {axes}")
    for name, expected in zip(["sum", "mean", "rms"], results[-3:], strict=True):
        source = arrays[0] if name == "sum" else np.array([1, 2, 4, 6], np.uint8)
        got = apply(names.get(name, name), source[None], tuple(range(source.ndim)), np.uint8)
        assert got[0] == expected, name


def _source(fn: Any, array: np.ndarray) -> Any:
    return fn.external_source(lambda: [array])


@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float64", "float16", "bool"])
def test_torch_gives_the_same(dtype: str) -> None:
    x = np.random.default_rng(5).integers(0, 2 if dtype == "bool" else 100, (2, 4, 1, 5, 3)).astype(dtype)
    if x.dtype.kind == "f":
        x[0, 0, 0, 0, 0] = np.nan
    if dtype == "uint64":
        x[0, 0, 0, 0, 0] = 2**64 - 5
    tensor = torch.from_numpy(x)
    for axes in [(), (0,), (0, 1, 2), (3,), (0, 2, 3), (0, 1, 2, 3)]:
        for name in ["total", "mean", "mean_square", "rms", "minimum", "maximum", "variance", "std_dev"]:
            public = {"total": "sum", "minimum": "min", "maximum": "max"}.get(name, name)
            kind = reduce.reduced_dtype(public, from_numpy(x.dtype)).numpy
            spread: dict[str, Any] = {"mean": np.array([30.0, 60.0])} if name in ("variance", "std_dev") else {}
            expected = apply(name, x, axes, kind, **spread)
            out = torch.from_numpy(np.empty_like(expected))
            function = getattr(reduce_torch, f"{name}_torch")
            if spread:
                function(out, tensor, torch.tensor([30.0, 60.0]), axes)
            else:
                function(out, tensor, axes)
            np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6, err_msg=f"{name} {dtype} {axes}")


def test_torch_without_elements() -> None:
    for name, expected in [("maximum", np.finfo(np.float32).min), ("minimum", np.finfo(np.float32).max), ("total", 0)]:
        out = torch.empty((1, 2))
        getattr(reduce_torch, f"{name}_torch")(out, torch.empty((1, 0, 2)), (0,))
        assert (out == float(expected)).all()
