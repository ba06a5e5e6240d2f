"""Conversion between dtypes, compared with stored results of the real DALI and with DALI."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dalify.kernels.arrays import convert

INTEGERS = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64]
FLOATS = np.array([0.5, 1.5, 2.5, -0.5, -3, 300, 254.5, 255.5, np.nan], np.float32)
HARD = np.array(
    [np.inf, -np.inf, 3e9, -3e9, 1e30, -1e30, 0.49999997, 0.3, -0.3, 65519.0, 70000.0, 2**24 + 1], np.float32
)


def cast(x: np.ndarray, dtype: type) -> np.ndarray:
    out = np.empty(x.shape, dtype)
    convert.saturate_cast(out, x)
    return out


def cast_many(x: np.ndarray, dtype: type) -> np.ndarray:
    """Call `cast` as for large arrays."""
    found = cast(np.tile(x, 500), dtype).reshape(500, -1)
    assert (found == found[0]).all()
    return found[0]


def cast_torch(x: np.ndarray, dtype: type) -> np.ndarray:
    out = torch.from_numpy(np.empty(x.shape, dtype))
    convert.saturate_cast_torch(out, torch.from_numpy(x))
    return out.numpy()


@pytest.fixture(params=[cast, cast_many, cast_torch], ids=["cpu", "many", "torch"], name="convert_to")
def _convert_to(request):
    return request.param


VECTORS = [
    (FLOATS, np.uint8, [1, 2, 3, 0, 0, 255, 255, 255, 0]),
    (HARD, np.uint8, [255, 0, 255, 0, 255, 0, 0, 0, 0, 255, 255, 255]),
    (HARD, np.int16, [32767, -32768, 32767, -32768, 32767, -32768, 0, 0, 0, 32767, 32767, 32767]),
    (np.array([-0.5, -2.5, 3e9, -3e9], np.float32), np.int32, [-1, -3, 2147483647, -2147483648]),
    (np.array([3e9, 1e19, -1], np.float32), np.uint32, [3000000000, 4294967295, 0]),
    (np.array([1e30, -1e30, 1.5], np.float32), np.int64, [2**63 - 1, -(2**63), 2]),
    (np.array([0.3, -0.5, 0.49999997, 2, np.nan], np.float32), np.bool_, [False, True, False, True, True]),
    (np.array([-5, 300, 2**40, -(2**40), 0], np.int64), np.uint8, [0, 255, 255, 0, 0]),
    (np.array([-5, 300, 2**40, -(2**40), 0], np.int64), np.int32, [-5, 300, 2**31 - 1, -(2**31), 0]),
    (np.array([-5, 300, 0], np.int32), np.uint64, [0, 300, 0]),
    (np.array([0.5, -0.5, 300, np.nan, np.inf], np.float16), np.uint8, [1, 0, 255, 0, 255]),
    (np.array([True, False]), np.float32, [1, 0]),
    (np.array([0.5, 1e300, -1e300, 0.49999999999999994], np.float64), np.int32, [1, 2**31 - 1, -(2**31), 0]),
    (np.array([1e300, -40000, 300.5, -300.5, np.nan], np.float64), np.int16, [32767, -32768, 301, -301, 0]),
    (np.array([1e300, -1, 254.5, np.inf, np.nan], np.float64), np.uint8, [255, 0, 255, 255, 0]),
    (np.array([70000, -5], np.float32), np.float16, [np.inf, -5]),
    *(
        (np.array([np.nan, np.inf, -np.inf, 7.5], source), target, [nan, np.iinfo(target).max, np.iinfo(target).min, 8])
        for source in (np.float16, np.float32, np.float64)
        for target, nan in ((np.int16, 0), (np.uint32, 0), (np.int32, -(2**31)), (np.int64, -(2**63)))
    ),
    (np.array([np.nan, -np.inf, 7.5], np.float32), np.uint64, [2**63, 0, 8]),
]


@pytest.mark.parametrize(("x", "dtype", "expected"), VECTORS)
def test_vectors(convert_to, x, dtype, expected):
    np.testing.assert_array_equal(convert_to(x, dtype), np.array(expected, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_floats_agree_with_exact_arithmetic(dtype):
    limits = np.iinfo(dtype)
    for value in [*FLOATS[:-1], *HARD[2:]]:
        half_away = int(abs(float(value)) + 0.5) if abs(value) > 0.4999999 else 0
        exact = half_away if value > 0 else -half_away
        exact = 0 if abs(value) < 0.5 else exact
        assert cast(np.array([value], np.float32), dtype)[0] == min(max(exact, limits.min), limits.max)


@pytest.mark.parametrize("source", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_many_floats_agree_with_exact_arithmetic(dtype, source):
    bits = np.dtype(f"u{np.dtype(source).itemsize}")
    values = np.random.default_rng(3).integers(0, np.iinfo(bits).max, 1000, bits).view(source)
    steps = np.array([2.0**power + half / 2 for power in range(66) for half in range(-3, 4)], source)
    values = np.concatenate([values[np.isfinite(values)], steps, -steps])
    values = np.concatenate([values, np.nextafter(values, source(0)), np.nextafter(values, source(1e30))])
    limits, half = np.iinfo(dtype), Fraction(1, 2)
    exact = [math.floor(abs(Fraction(value)) + half) * (1 if value > 0 else -1) for value in values.tolist()]
    expected = [min(max(value, limits.min), limits.max) for value in exact]
    np.testing.assert_array_equal(cast(values, dtype), np.array(expected, dtype))


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.float32, 7, elements=st.floats(width=32)),
    st.sampled_from([*INTEGERS[:6], np.int64, np.bool_, np.float32]),
)
def test_torch_equals_numpy(x, dtype):
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(cast(x, dtype), cast_torch(x, dtype))


_ALL = [*INTEGERS, np.float16, np.float32, np.float64, np.bool_]


@pytest.mark.parametrize("target", [np.float16, np.float32])
@pytest.mark.parametrize("source", _ALL)
def test_windows_saturate_floats(source, target):
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.array([0, 1, 60000, 65503, -65503, 65520, 65535, -65536, 2**31 - 1, 1e18, -1e30, 1e300]).astype(source)
        x = np.append(x, np.array([np.inf, -np.inf, np.nan], source)) if x.dtype.kind == "f" else x
        wide, largest = x.astype(np.float64), np.finfo(target).max
        # Values of the same or a smaller type are kept, infinity included.
        is_kept = x.dtype.kind == "f" and x.dtype.itemsize <= np.dtype(target).itemsize
        expected = (wide if is_kept else np.clip(wide, -float(largest), float(largest))).astype(target)
    found = np.empty(x.shape, target)
    convert.truncate_cast(found, x)
    np.testing.assert_array_equal(found, expected)
    if source not in (np.uint32, np.uint64):
        on_device = torch.from_numpy(np.empty(x.shape, target))
        convert.truncate_cast_torch(on_device, torch.from_numpy(x))
        np.testing.assert_array_equal(on_device.numpy(), expected)


def test_strided_float16():
    x = np.arange(2048, 2054, dtype=np.int32).reshape(2, 3)
    out = np.empty((3, 2), np.float16).T
    convert.saturate_cast(out, x)
    np.testing.assert_array_equal(out, [[2048, 2050, 2050], [2052, 2052, 2054]])


def test_strided_output():
    x = np.arange(-2.5, 3.5, dtype=np.float32).reshape(2, 3)
    out = np.empty((3, 2), np.uint8).T
    convert.saturate_cast(out, x)
    np.testing.assert_array_equal(out, [[0, 0, 0], [1, 2, 3]])


def test_equals_dali():
    pytest.importorskip("nvidia.dali")
    from nvidia.dali import fn, pipeline_def, types

    x = np.concatenate([FLOATS, HARD])

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def graph():
        data = fn.external_source(lambda _: x, batch=False)
        kinds = (types.UINT8, types.INT16, types.INT32, types.INT64, types.BOOL, types.UINT32, types.UINT64)
        return tuple(fn.cast(data, dtype=kind) for kind in kinds)

    pipe = graph()
    pipe.build()
    for output in pipe.run():
        expected = np.array(output[0])
        np.testing.assert_array_equal(cast(x, expected.dtype.type), expected)
