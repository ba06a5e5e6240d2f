"""Fill values that the element type cannot represent: the results are those of the real DALI 2.4 on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalify
from dalify import eager
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import Each

_VALUES = (-1, -300, 300, 70000, 128.5, -0.5, 1e10, -1e10, float("inf"), float("nan"), 1e19, -1e19, 16777217)
_EXPECTED = {
    "uint8": (255, 212, 44, 112, 128, 0, 0, 0, 0, 0, 0, 0, 0),
    "int8": (-1, -44, 44, 112, -128, 0, 0, 0, 0, 0, 0, 0, 0),
    "uint16": (65535, 65236, 300, 4464, 128, 0, 0, 0, 0, 0, 0, 0, 0),
    "int16": (-1, -300, 300, 4464, 128, 0, 0, 0, 0, 0, 0, 0, 0),
    "int32": (-1, -300, 300, 70000, 128, 0, *[-(2**31)] * 6, 2**24),
    "uint32": (2**32 - 1, 2**32 - 300, 300, 70000, 128, 0, 10**10 % 2**32, -(10**10) % 2**32, 0, 0, 0, 0, 2**24),
    "int64": (-1, -300, 300, 70000, 128, 0, 10**10, -(10**10), *[-(2**63)] * 4, 2**24),
    "uint64": (
        *(2**64 - 1, 2**64 - 300, 300, 70000, 128, 0, 10**10, 2**64 - 10**10),
        *(0, 2**63, 9999999980506447872, 2**63, 2**24),  # 1e19 is rounded to float32
    ),
}
_CASES = [
    (kind, value, expected) for kind, row in _EXPECTED.items() for value, expected in zip(_VALUES, row, strict=True)
]


def _outside(x: np.ndarray, value: float) -> dict[str, Any]:
    """Return the element that each operator fills with the value."""
    policy: dict[str, Any] = {"out_of_bounds_policy": "pad", "fill_values": value}
    dtype = dalify.types.to_dali_type(x.dtype)
    return {
        "erase": eager.erase(x, anchor=[0, 0], shape=[2, 2], fill_value=value, axes=[0, 1])[0, 0, 0],
        "pad": eager.pad(x, axes=[0], shape=[6], fill_value=value)[5, 0, 0],
        "crop": eager.crop(x, crop=[6, 6], **policy)[0, 0, 0],
        "slice": eager.slice(x, 0, 6, axes=[0], **policy)[5, 0, 0],
        "one_hot": eager.one_hot(np.array([1], np.int32), num_classes=3, off_value=value, dtype=dtype)[0],
    }


@pytest.mark.parametrize(("kind", "value", "expected"), _CASES)
def test_values_out_of_range(kind, value, expected):
    found = _outside(np.full((4, 4, 1), 7, kind), value)
    assert {name: np.asarray(item).item() for name, item in found.items()} == dict.fromkeys(found, expected)


@pytest.mark.parametrize(("kind", "value", "expected"), [case for case in _CASES if case[1] in (-300, 1e10, 1e19)])
def test_values_out_of_range_on_the_device(device, kind, value, expected):
    images = [np.full((4, 4, 1), 7, kind)]
    policy: dict[str, Any] = {"out_of_bounds_policy": "pad", "fill_values": value}
    for operator, arguments in {
        "erase": {"anchor": [0, 0], "shape": [2, 2], "fill_value": value, "axes": [0, 1]},
        "pad": {"axes": [0], "shape": [6], "fill_value": value},
        "crop": {"crop": [6, 6], **policy},
        "slice": {"start": [-1, -1], "end": [6, 6], "axes": [0, 1], **policy},
    }.items():
        (result,) = run_dalify(operator, images, layouts="HWC", device=device, **arguments)
        assert set(np.unique(result).tolist()) == {7, expected}, operator


@pytest.mark.parametrize(("value", "expected"), [(0.1, True), (-1, True), (0, False)])
def test_booleans(value, expected):
    assert np.asarray(eager.pad(np.array([False, True]), shape=[3], fill_value=value))[2] == expected


@pytest.mark.parametrize(("value", "expected"), list(zip(_VALUES, _EXPECTED["uint8"], strict=True)))
def test_values_out_of_range_of_the_result(value, expected):
    x = np.full((4, 4, 1), 7, np.uint8)
    options: dict[str, Any] = {
        "crop": [6, 6],
        "out_of_bounds_policy": "pad",
        "fill_values": value,
        "output_layout": "HWC",
    }
    result = eager.crop_mirror_normalize(x, dtype=dalify.types.UINT8, **options)
    assert np.asarray(result)[0, 0, 0] == expected


@pytest.mark.parametrize(("value", "expected"), [(-1, 255), (-300, 212), (256, 0), (300, 44), (70000, 112)])
def test_colors_of_a_canvas(value, expected):
    result = eager.paste(np.full((4, 4, 3), 7, np.uint8), ratio=2.0, fill_value=value)
    assert np.asarray(result)[0, 0].tolist() == [expected] * 3


@pytest.mark.parametrize("operator", [eager.water, eager.sphere])
@pytest.mark.parametrize(("value", "expected"), list(zip(_VALUES, _EXPECTED["uint8"], strict=True)))
def test_pixels_from_outside_of_the_image(operator, value, expected):
    nearest = dalify.types.DALIInterpType.INTERP_NN
    result = np.asarray(operator(np.full((12, 14, 3), 7, np.uint8), fill_value=value, interp_type=nearest))
    assert set(np.unique(result)) == {7, expected}


def test_zeros_of_both_signs():
    x = np.ones(1, np.float32)
    for value in (0.0, -0.0, 0.0):
        assert np.signbit(np.asarray(eager.pad(x, shape=[2], fill_value=value))[1]) == np.signbit(value)


def test_values_of_each_sample():
    values = np.float32([[-1, 300, 0.5], [2, -300, 70000]])
    images = [np.full((2, 2, 3), 7, np.uint8)] * 2
    for given in (values, values[::-1]):
        region: dict[str, Any] = {"anchor": [0, 0], "shape": [1, 1], "axes": [0, 1]}
        found = run_dalify("erase", images, layouts="HWC", fill_value=Each(list(given)), **region)
        assert [image[0, 0].tolist() for image in found] == given.astype(np.int64).astype(np.uint8).tolist()
        assert all((image[1:] == 7).all() for image in found)
