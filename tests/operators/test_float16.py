"""Operators that store float16: the results are those of the real DALI 2.4 on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalify
from dalify import eager
from tests.helpers.one_operator import run_dalify

_VALUES = (2049, 2051, 61072, 65503, 65520, 65535)
_ROUNDED = (2050, 2052, 61088, 65504)
_FLOATS = (-2049, 1 + 2**-11, -65520, 1e10, float("inf"), float("-inf"), float("nan"), 2**-25)
_INFINITY = float("inf")
_INFINITE = (*_ROUNDED, _INFINITY, _INFINITY)
_SATURATED = (*_ROUNDED, 65504, 65504)
_INFINITE_FLOATS = (-2050, 1 + 2**-10, -_INFINITY, _INFINITY, _INFINITY, -_INFINITY, float("nan"), 2**-24)
_SATURATED_FLOATS = (-2050, 1 + 2**-10, -65504, 65504, 65504, -65504, float("nan"), 2**-24)
_TYPES = ("uint16", "uint32", "uint64", "int32", "int64", "float32", "float64")
_WINDOWS = ("crop", "crop, beyond", "slice", "slice, beyond", "slice, reflected")
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "cast": {},
    "crop_mirror_normalize": {"output_layout": "HWC", "mean": [0.0], "std": [1.0]},
    "crop": {"crop": [1, 0]},
    "crop, beyond": {"crop": [3, 0], "out_of_bounds_policy": "pad"},
    "slice": {"start": [0], "shape": [1], "axes": [0]},
    "slice, beyond": {"start": [-1], "shape": [3], "axes": [0], "out_of_bounds_policy": "pad"},
    "slice, reflected": {"start": [-1], "shape": [3], "axes": [0], "out_of_bounds_policy": "reflect"},
}


def _image(kind: str) -> np.ndarray:
    values = (*_VALUES, *_FLOATS) if kind.startswith("float") else _VALUES
    return np.array(values, kind).reshape(1, -1, 1)


def _expected(name: str, kind: str) -> np.ndarray:
    values = _SATURATED if name in _WINDOWS else _INFINITE
    if kind.startswith("float"):
        values += _SATURATED_FLOATS if name in _WINDOWS else _INFINITE_FLOATS
    row = np.array(values, np.float16).reshape(1, -1, 1)
    if not name.endswith(("beyond", "reflected")):
        return row
    outside = row if name.endswith("reflected") else np.zeros_like(row)
    return np.concatenate([outside, row, outside])


@pytest.mark.parametrize("kind", _TYPES)
@pytest.mark.parametrize("name", _ARGUMENTS)
def test_values_that_float16_cannot_represent(name, kind):
    operator, arguments = name.partition(",")[0], _ARGUMENTS[name]
    image, expected = _image(kind), _expected(name, kind)
    results = run_dalify(operator, [image, image[:, ::-1]], layouts="HWC", dtype="FLOAT16", **arguments)
    np.testing.assert_array_equal(results[0], expected)
    np.testing.assert_array_equal(results[1], expected[:, ::-1])
    call = getattr(eager, operator)(dalify.tensors.TensorCPU(image, "HWC"), dtype=dalify.types.FLOAT16, **arguments)
    np.testing.assert_array_equal(np.asarray(call), expected)


@pytest.mark.parametrize("kind", ["uint16", "int32", "float32", "float64"])
@pytest.mark.parametrize("name", _ARGUMENTS)
def test_values_beyond_the_numbers_of_float16_on_the_device(device, name, kind):
    arguments = _ARGUMENTS[name]
    # Halves are rounded to even on an accelerator, by DALI as well; they are left out.
    places = [at for at, value in enumerate(_image(kind)[0, :, 0]) if abs(value) >= 65503 or value != value]
    image, expected = _image(kind)[:, places], _expected(name, kind)[:, places]
    (result,) = run_dalify(name.partition(",")[0], [image], layouts="HWC", device=device, dtype="FLOAT16", **arguments)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("policy", ["error", "pad"])
def test_windows_of_float64_saturate_float32(device, policy):
    image = np.array([1e300, -1e300, np.inf, 1.5]).reshape(1, 4, 1)
    arguments: dict[str, Any] = {"crop": [1, 4], "dtype": "FLOAT", "out_of_bounds_policy": policy}
    (result,) = run_dalify("crop", [image], layouts="HWC", device=device, **arguments)
    largest = np.finfo(np.float32).max
    np.testing.assert_array_equal(result.reshape(-1), np.array([largest, -largest, largest, 1.5], np.float32))


@pytest.mark.parametrize("kind", ["float16", "uint8"])
def test_float16_is_copied(device, kind):
    image = np.array([1, 3, 250, *([_INFINITY] if kind == "float16" else [])]).astype(kind).reshape(1, -1, 1)
    (result,) = run_dalify(
        "slice", [image], layouts="HWC", device=device, dtype="FLOAT16", start=[0], shape=[1], axes=[0]
    )
    np.testing.assert_array_equal(result, image.astype(np.float16))


@pytest.mark.parametrize(("value", "expected"), [(61072.0, 61088.0), (2049.0, 2050.0), (70000.0, _INFINITY)])
def test_values_of_arguments(value, expected):
    x, half = np.full((2, 2, 1), 7, np.float16), dalify.types.FLOAT16
    policy: dict[str, Any] = {"out_of_bounds_policy": "pad", "fill_values": value}
    found = {
        "erase": eager.erase(x, anchor=[0, 0], shape=[1, 1], fill_value=value, axes=[0, 1])[0, 0, 0],
        "pad": eager.pad(x, axes=[0], shape=[3], fill_value=value)[2, 0, 0],
        "crop": eager.crop(x, crop=[4, 4], **policy)[0, 0, 0],
        "slice": eager.slice(x, 0, 3, axes=[0], **policy)[2, 0, 0],
        "crop_mirror_normalize": eager.crop_mirror_normalize(x, crop=[4, 4], output_layout="HWC", dtype=half, **policy)[
            0, 0, 0
        ],
        "lookup_table": eager.lookup_table(np.zeros(1, np.uint8), keys=[0], values=[value], dtype=half)[0],
        "constant": eager.constant(fdata=[value], dtype=half)[0],
    }
    assert {name: float(np.asarray(item)) for name, item in found.items()} == dict.fromkeys(found, expected)
