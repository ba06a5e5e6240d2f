"""Conversion of the values of arguments: as in DALI, except where DALI's result has another meaning."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import pytest
import torch

import dalify
from dalify import types
from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.registry.parameters import parameter_of

_VECTORS = {int: "_INT32_VEC", float: "_FLOAT_VEC", bool: "_BOOL_VEC", str: "_STRING_VEC"}
_SINGLE = {int: "INT32", float: "FLOAT", bool: "BOOL", str: "STRING", types.DALIDataType: "DATA_TYPE"}

# Type, value, and what the real DALI makes of it.
CONVERTED: list[tuple[type, Any, Any]] = [
    (int, "1", 1),
    (int, " -12 ", -12),
    (int, 3.0, 3),
    (int, 10.5, 10),
    (int, -2.5, -2),
    (int, 0.0, 0),
    (int, True, 1),
    (int, np.int64(4), 4),
    (int, np.float32(551.25), 551),
    (int, np.array(7), 7),
    (int, np.array([[7]]), 7),
    (int, torch.tensor(7), 7),
    (float, "0.25", 0.25),
    (float, "1e3", 1000.0),
    (float, True, 1.0),
    (float, np.float16(0.5), 0.5),
    (float, torch.tensor([0.5]), 0.5),
    (bool, 0, False),
    (bool, 2, True),
    (bool, 1.0, True),
    (bool, -3.0, True),
    (bool, "", False),
    (bool, "1", True),
    (bool, "True", True),
    (bool, np.bool_(False), False),
    (bool, np.array([1]), True),
    (str, 3, "3"),
    (str, 0.5, "0.5"),
    (str, np.int32(4), "4"),
    (types.DALIDataType, 9, types.FLOAT),
    (types.DALIDataType, 9.0, types.FLOAT),
    (types.DALIDataType, "9", types.FLOAT),
    (types.DALIDataType, np.int32(9), types.FLOAT),
]
# DALI takes these, too: any object is True, any object has a string, fractions become 0.
REFUSED: list[tuple[type, Any]] = [
    (int, 0.37),
    (int, -0.5),
    (bool, "False"),
    (bool, "0"),
    (bool, "nonsense"),
    (bool, 0.37),
    (bool, -2.5),
    (bool, [False]),
    (bool, object()),
    (bool, 1j),
    (str, True),
    (str, ["a", "b"]),
    (str, object()),
    (str, 1j),
    (types.DALIDataType, True),
    (types.DALIDataType, 0.37),
]
# Neither library takes these.
WRONG: list[tuple[type, Any]] = [
    (int, "3.5"),
    (int, ""),
    (int, "nonsense"),
    (int, float("nan")),
    (int, float("inf")),
    (int, [3]),
    (int, 1j),
    (int, np.array([1, 2])),
    (float, "nonsense"),
    (float, [0.5]),
    (float, object()),
    (types.DALIDataType, "FLOAT"),
]


def _dali(oracle: Any, name: str, value: Any) -> Any:
    return oracle.types._type_convert_value(getattr(oracle.types.DALIDataType, name), value)


def _of(element: type, value: Any, *, is_list: bool = False) -> Any:
    return parameter_of("value", list[element] if is_list else element, None).normalize(value, "fn.operator")


@pytest.mark.parametrize(("element", "value", "expected"), CONVERTED)
def test_converted(element, value, expected):
    found = _of(element, value)
    assert found == expected
    assert type(found) is type(expected)
    if element in _VECTORS:
        assert _of(element, value, is_list=True) == (expected,)
        assert _of(element, [value, value], is_list=True) == (expected, expected)


@pytest.mark.parametrize(("element", "value", "expected"), CONVERTED)
def test_converted_compared_with_dali(element, value, expected, oracle):
    found = _dali(oracle, _SINGLE[element], value)
    if issubclass(element, IntEnum):
        found, expected = int(found), int(expected)
    assert found == expected
    if element in _VECTORS:
        assert _dali(oracle, _VECTORS[element], value) == [expected]


@pytest.mark.parametrize(("element", "value"), [*REFUSED, *WRONG])
def test_refused(element, value):
    with pytest.raises((ArgumentTypeError, ArgumentValueError), match="value must be"):
        _of(element, value)


@pytest.mark.parametrize(("element", "value"), REFUSED)
def test_refused_compared_with_dali(element, value, oracle):
    """A value that DALI no longer takes needs no entry among the intended differences."""
    _dali(oracle, _SINGLE[element], value)


@pytest.mark.parametrize(("element", "value"), WRONG)
def test_wrong_compared_with_dali(element, value, oracle):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        _dali(oracle, _SINGLE[element], value)


@pytest.mark.parametrize("value", [np.uint8, np.dtype(np.uint8), types.UINT8])
def test_types_of_numpy_are_element_types(value):
    """They are classes with methods of numbers and arrays. DALI takes only its own types."""
    assert _of(types.DALIDataType, value) is types.UINT8
    assert _of(types.DALIDataType, value, is_list=True) == (types.UINT8,)
    assert _of(types.DALIDataType, [value], is_list=True) == (types.UINT8,)


def test_in_a_pipeline():
    fn: Any = dalify.fn  # the stubs know the types that are meant
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)

    @dalify.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline():
        x = fn.external_source(source=lambda: image, batch=False, layout="HWC")
        return (
            fn.flip(x, horizontal="1"),
            fn.cast(x, dtype="9"),
            fn.pad(x, axes=torch.tensor([0, 1]), shape=[6.9, np.array(5)]),
            fn.random.uniform(seed=3.7),
            fn.random.uniform(seed="3"),
        )

    flipped, floats, padded, first, second = (output.as_cpu().as_array()[0] for output in pipeline().run())
    np.testing.assert_array_equal(flipped, image[:, ::-1])
    assert floats.dtype == np.float32
    assert padded.shape == (6, 5, 3)
    assert first.shape == second.shape == ()
