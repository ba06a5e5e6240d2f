"""Types and layouts of results, compared with DALI's documentation and behavior."""

from __future__ import annotations

import pytest

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DTypeError, LayoutError, ShapeError
from dalify.data.dtypes import DALIDataType as T
from dalify.kernels.arrays.promotion import broadcast_shape, common_layout, promote, result_dtype

NUMERIC = [item for item in T if T.UINT8 <= item <= T.BOOL]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (T.UINT8, T.UINT8, T.UINT8),
        (T.UINT8, T.INT32, T.INT32),
        (T.UINT8, T.INT8, T.INT16),
        (T.UINT16, T.INT8, T.INT32),
        (T.UINT16, T.INT16, T.INT32),
        (T.UINT32, T.INT32, T.INT64),
        (T.UINT64, T.INT8, T.INT64),
        (T.UINT16, T.UINT64, T.UINT64),
        (T.INT64, T.FLOAT, T.FLOAT),
        (T.INT8, T.FLOAT16, T.FLOAT16),
        (T.FLOAT16, T.FLOAT, T.FLOAT),
        (T.FLOAT, T.FLOAT64, T.FLOAT64),
        (T.BOOL, T.UINT8, T.UINT8),
        (T.BOOL, T.FLOAT, T.FLOAT),
        (T.BOOL, T.BOOL, T.BOOL),
    ],
)
def test_promotion(first: T, second: T, expected: T) -> None:
    assert promote(first, second) == promote(second, first) == expected


def test_division_and_functions_of_integers_are_floats() -> None:
    for dtype in NUMERIC[:8]:
        assert result_dtype("fdiv", dtype, dtype) == T.FLOAT
        assert result_dtype("sqrt", dtype) == T.FLOAT
        assert result_dtype("floor", dtype) == T.FLOAT
        assert result_dtype("div", dtype, dtype) == dtype
    assert result_dtype("fdiv", T.UINT8, T.FLOAT64) == T.FLOAT64


def test_comparisons_are_booleans() -> None:
    assert {result_dtype("lt", first, second) for first in NUMERIC for second in NUMERIC} == {T.BOOL}


def test_three_operands_are_promoted_from_left_to_right() -> None:
    assert result_dtype("clamp", T.UINT8, T.INT8, T.FLOAT) == T.FLOAT
    assert result_dtype("clamp", T.UINT8, T.INT8, T.INT8) == T.INT16


@pytest.mark.parametrize("function", ["add", "sub", "fdiv", "div", "mod", "pow", "min", "max", "atan2", "fpow"])
def test_booleans_are_not_numbers(function: str) -> None:
    with pytest.raises(DTypeError, match="not defined for booleans only"):
        result_dtype(function, T.BOOL, T.BOOL)
    assert result_dtype("mul", T.BOOL, T.BOOL) == T.BOOL


@pytest.mark.parametrize("function", ["minus", "abs", "sqrt"])
def test_a_boolean_is_not_a_number(function: str) -> None:
    with pytest.raises(DTypeError, match="not defined for a boolean"):
        result_dtype(function, T.BOOL)


def test_bits_of_floats_are_refused() -> None:
    with pytest.raises(DTypeError, match="integers or booleans; the operand dtypes are uint8 and float32"):
        result_dtype("bitand", T.UINT8, T.FLOAT)


def test_unknown_functions_and_counts_are_refused() -> None:
    with pytest.raises(ArgumentValueError, match=r"function must be one of add, sub.*Did you mean 'sqrt'"):
        result_dtype("sqr", T.FLOAT)
    with pytest.raises(ArgumentTypeError, match="takes 2 operands; got 1"):
        result_dtype("add", T.FLOAT)


def test_layouts_are_equal_or_suffixes() -> None:
    assert common_layout(["HWC", "C"]) == "HWC"
    assert common_layout(["", "HW", "HW"]) == "HW"
    assert common_layout([]) == ""
    with pytest.raises(LayoutError, match=r"'CHW' and 'HWC'|'HWC' and 'CHW'"):
        common_layout(["HWC", "CHW"])


def test_shapes_broadcast_at_the_end() -> None:
    assert broadcast_shape((4, 1, 3), (2, 1)) == (4, 2, 3)
    assert broadcast_shape((), (2,)) == (2,)
    with pytest.raises(ShapeError, match=r"\(2,\) and \(3,\)"):
        broadcast_shape((2,), (3,))
