"""Arithmetic compared with the real DALI for every function and pair of dtypes, and torch kernels with NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.data.dtypes import from_numpy
from dalify.kernels.arrays.arithmetic import compute
from dalify.kernels.arrays.arithmetic_torch import compute_torch
from dalify.kernels.arrays.promotion import FUNCTIONS, result_dtype

DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64", "bool"]
UNARY = [name for name, function in FUNCTIONS.items() if function.arity == 1]
BINARY = [name for name, function in FUNCTIONS.items() if function.arity == 2]


def data(dtype: str, role: int) -> np.ndarray:
    """Return thirteen values with zero, signs, extremes, halves and wrap-around; without zero for `role` 1."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        values = np.array([1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0, 1, 1], bool)
        return values | bool(role)
    if kind.kind == "f":
        first = [0.0, -0.5, 1.5, 2.25, -7.0, 1e-3, 300.5, -3e5, 100.0, 0.9, -0.25, 7.0, np.nan]
        return np.array(first if not role else [*first[:0:-1], 3.0], kind)
    limits = np.iinfo(kind)
    first = [0, 1, 2, 3, 5, 7, 100, limits.max, limits.min, limits.max // 2, limits.max // 3, 10, 17]
    second = [3, 1, 2, 4, 5, 3, 7, 2, 9, 1, 3, 5, 6]  # DALI crashes for the smallest integer divided by -1
    if kind.kind == "i":
        second[3:6] = [-4, -1, -2]
    return np.array(second if role else first, kind)


def ours(function: str, *operands: np.ndarray) -> np.ndarray:
    dtype = result_dtype(function, *(from_numpy(operand.dtype) for operand in operands))
    out = np.empty(np.broadcast_shapes(*(operand.shape for operand in operands)), dtype.numpy)
    compute(function, out[None], *(operand[None] for operand in operands))
    return out


def python_form(function: str) -> Any:
    """Return the Python expression of a function in DALI."""
    import operator

    dali_math = pytest.importorskip("nvidia.dali.math")
    forms = {
        "add": operator.add, "sub": operator.sub, "mul": operator.mul, "fdiv": operator.truediv,
        "div": operator.floordiv, "mod": operator.mod, "bitand": operator.and_, "bitor": operator.or_, 
        "bitxor": operator.xor,
        "lshift": operator.lshift, "rshift": operator.rshift, "eq": operator.eq, "neq": operator.ne, "lt": operator.lt,
        "leq": operator.le, "gt": operator.gt, "geq": operator.ge, "plus": operator.pos, "minus": operator.neg,
        "bitnot": operator.invert, "pow": operator.pow,
    }  # fmt: skip
    return forms.get(function) or getattr(dali_math, function)


def dali(cases: list[tuple[str, tuple[np.ndarray, ...]]]) -> list[np.ndarray]:
    """Run many expressions in one pipeline of the real DALI."""
    nvidia = pytest.importorskip("nvidia.dali")
    fn = pytest.importorskip("nvidia.dali.fn")
    pipe = nvidia.Pipeline(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe:
        sources: dict[int, Any] = {}
        outputs = []
        for function, operands in cases:
            for operand in operands:
                if id(operand) not in sources:
                    sources[id(operand)] = fn.external_source(itertools.repeat([operand]))
            outputs.append(python_form(function)(*(sources[id(operand)] for operand in operands)))
        pipe.set_outputs(*outputs)
    pipe.build()
    return [np.array(result[0]) for result in pipe.run()]


def defined(function: str, *dtypes: str) -> bool:
    try:
        result_dtype(function, *(from_numpy(dtype) for dtype in dtypes))
    except DTypeError:
        return False
    return True


def check(cases: list[tuple[str, tuple[np.ndarray, ...]]]) -> None:
    for (function, operands), expected in zip(cases, dali(cases), strict=True):
        got = ours(function, *operands)
        name = f"{function} {[str(operand.dtype) for operand in operands]}"
        assert got.dtype == expected.dtype, name
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, expected, rtol=2e-6 if got.dtype == np.float32 else 1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=name)


LEFT = {dtype: data(dtype, 0) for dtype in DTYPES}
RIGHT = {dtype: data(dtype, 1) for dtype in DTYPES}


@pytest.mark.parametrize("function", BINARY)
def test_binary_functions_equal_dali(function: str) -> None:
    shifts = function in ("lshift", "rshift")  # C leaves negative and too large counts undefined
    counts = {dtype: np.array([0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4]).astype(dtype) for dtype in DTYPES}
    right = counts if shifts else RIGHT
    cases = []
    for first, second in itertools.product(DTYPES, DTYPES):
        if defined(function, first, second):
            a, b = LEFT[first], right[second]
            if FUNCTIONS[function].kind == "comparison" and {a.dtype.kind, b.dtype.kind} == {"f", "i"}:
                # DALI takes negative integers for smaller than any float, and finds -7.0 != -7. dalify does not.
                kept = (a if a.dtype.kind == "i" else b) >= 0
                a, b = a[kept], b[kept]
            cases.append((function, (a, b)))
    check(cases)


def test_unary_functions_equal_dali() -> None:
    positive = {dtype: np.abs(LEFT[dtype]) if LEFT[dtype].dtype.kind == "f" else LEFT[dtype] for dtype in DTYPES}
    cases = []
    for function, dtype in itertools.product(UNARY, DTYPES):
        if defined(function, dtype):
            values = (positive if function in ("log", "log2", "log10", "sqrt", "rsqrt") else LEFT)[dtype]
            if function == "rsqrt":
                values = values[values != 0]  # DALI gives NaN for 0; ours is infinite
            cases.append((function, (values,)))
    check(cases)


def test_clamp_equals_dali() -> None:
    low = {dtype: np.array([1, 2, 50][: 1 if dtype == "bool" else 3]).astype(dtype) for dtype in DTYPES}
    cases = []
    for first, second in itertools.product(DTYPES, DTYPES):
        if defined("clamp", first, second, second):
            cases.append(("clamp", (LEFT[first], low[second][:1], low[second][-1:])))
    nan = np.float32("nan")
    edges = [np.array(row, np.float32) for row in ([nan, 1, 2, 5, 5], [1, nan, 3, 1, 9], [2, 3, nan, 4, 3])]
    check([*cases, ("clamp", tuple(edges))])


@pytest.mark.parametrize("function", ["min", "max"])
def test_nan_is_treated_as_in_dali(function: str) -> None:
    nan = np.float32("nan")
    check([(function, (np.array([nan, 1, 2], np.float32), np.array([1, nan, 3], np.float32)))])


@pytest.mark.parametrize("function", ["min", "max"])
@pytest.mark.parametrize("first_is_constant", [False, True])
@pytest.mark.parametrize("second_is_constant", [False, True])
@pytest.mark.parametrize("dtypes", [("f4", "f4"), ("f8", "f4"), ("u1", "f4"), ("f4", "i4"), ("f2", "f2")])
def test_nan_of_arrays_and_constants(
    function: str, first_is_constant: bool, second_is_constant: bool, dtypes: tuple[str, str]
) -> None:
    edges: Any = [np.nan, -np.inf, 0, 3, np.inf]
    lists = [[5.0, np.nan, 0.0] if dtype[0] == "f" else [5, 0] for dtype in dtypes]
    for one, other in itertools.product(*lists):
        a = np.array([[one]] if first_is_constant else [edges] if dtypes[0][0] == "f" else [[0, 3, 4, 5, 7]], dtypes[0])
        b = np.array([[other]] if second_is_constant else [[*[other] * 4, 3]], dtypes[1])
        found = np.empty((1, 1 if a.shape == b.shape == (1, 1) else 5), np.result_type(*dtypes))
        wide = [operand.astype(found.dtype) for operand in (a, b)]
        is_chosen = wide[0] < wide[1] if function == "min" else wide[0] > wide[1]
        compute(function, found, a, b)
        np.testing.assert_array_equal(found, np.broadcast_to(np.where(is_chosen, *wide), found.shape))


def test_negative_integers_compare_with_floats_by_value() -> None:
    a, b = np.array([-7.0, -7.0, 2.0], np.float32), np.array([-7, -1, -3], np.int32)
    assert ours("eq", a, b).tolist() == [True, False, False]
    assert ours("lt", a, b).tolist() == [False, True, False]


def test_integers_and_floats_give_the_type_of_the_float() -> None:
    a, b = np.array([2**24 + 1], np.int32), np.array([2**24], np.float32)
    check([("eq", (a, b)), ("gt", (a, b)), ("eq", (a, b.astype(np.float64)))])


def test_broadcasting_equals_dali() -> None:
    rng = np.random.default_rng(0)
    shapes = [
        ((2, 3), (3,)),
        ((4, 1, 3), (5, 1)),
        ((), (2, 2)),
        ((40, 30, 3), (3,)),
        ((40, 30, 3), (30, 1)),
        ((0,), (1,)),
    ]
    cases = [
        ("sub", (rng.integers(0, 255, first).astype(np.uint8), rng.integers(-9, 9, second).astype(np.int32)))
        for first, second in shapes
    ]
    check(cases)


def test_each_sample_gets_its_own_parameter() -> None:
    x = np.arange(2 * 64 * 4 * 3, dtype=np.int32).reshape(2, 64, 4, 3)
    scalar, channel = np.array([10, 20], np.int32), np.array([[1, 2, 3], [4, 5, 6]], np.int32)
    out = np.empty_like(x)
    compute("add", out, x, scalar)
    np.testing.assert_array_equal(out, x + scalar[:, None, None, None])
    compute("mul", out, x, channel)
    np.testing.assert_array_equal(out, x * channel[:, None, None, :])
    compute("sub", out, np.broadcast_to(scalar[:1], (2,)), x)
    np.testing.assert_array_equal(out, 10 - x)


@pytest.mark.parametrize("function", list(FUNCTIONS))
def test_results_do_not_depend_on_the_memory_of_operands(function: str) -> None:
    """The output may be the first operand, and the samples of a constant are one."""
    counts = {dtype: np.array([0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4]).astype(dtype) for dtype in DTYPES}
    right = counts if function in ("lshift", "rshift") else RIGHT
    arity = FUNCTIONS[function].arity
    for dtypes in itertools.product(DTYPES, repeat=min(arity, 2)):
        operands = [LEFT[dtypes[0]], right[dtypes[-1]][1:2], right[dtypes[-1]][2:3]][:arity]
        if not defined(function, *(str(operand.dtype) for operand in operands)):
            continue
        dtype = result_dtype(function, *(from_numpy(operand.dtype) for operand in operands)).numpy
        first = np.stack([operands[0], operands[0][::-1]])
        copies = [first, *(np.repeat(operand[None], 2, axis=0) for operand in operands[1:])]
        expected = np.empty(first.shape, dtype)
        compute(function, expected, *copies)
        views = [first, *(np.broadcast_to(operand, (2, 1)) for operand in operands[1:])]
        out = first if first.dtype == dtype else np.empty(first.shape, dtype)
        compute(function, out, *views)
        assert out.tobytes() == expected.tobytes(), f"{function} {dtypes}"


@pytest.mark.parametrize("function", ["div", "mod"])
def test_integer_division_by_zero_names_the_sample(function: str) -> None:
    a, b = np.ones((3, 2), np.int32), np.array([[1, 1], [1, 0], [0, 1]], np.int32)
    with pytest.raises(ArgumentValueError, match=r"integer division by zero\.") as caught:
        compute(function, np.empty_like(a), a, b)
    assert caught.value.sample == 1


def test_float16_computes_in_float16() -> None:
    a, b = np.array([1.5, -2.0, 7.0], np.float16), np.array([3, 2, 2], np.uint8)
    assert ours("add", a, b).tolist() == [4.5, 0, 9]
    assert ours("add", a, b).dtype == np.float16
    assert ours("add", a, a.astype(np.float32)).dtype == np.float32


def test_shift_counts_beyond_the_width_empty_the_value() -> None:
    assert ours("lshift", np.array([1, 1], np.int32), np.array([32, -1], np.int32)).tolist() == [0, 0]
    assert ours("rshift", np.array([-5, 5], np.int32), np.array([40, 40], np.int32)).tolist() == [-1, 0]


def twin(function: str, *operands: np.ndarray) -> np.ndarray:
    dtype = result_dtype(function, *(from_numpy(operand.dtype) for operand in operands))
    out = torch.from_numpy(np.empty(np.broadcast_shapes(*(operand.shape for operand in operands)), dtype.numpy))
    compute_torch(function, out[None], *(torch.from_numpy(operand)[None] for operand in operands))
    return out.numpy()


@pytest.mark.parametrize("function", list(FUNCTIONS))
def test_torch_gives_the_same(function: str) -> None:
    arity = FUNCTIONS[function].arity
    counts = {dtype: np.array([0, 1, 2, 3, 4, 5, 6, 7, 40, 70, 2, 3, 4]).astype(dtype) for dtype in DTYPES}
    right = counts if function in ("lshift", "rshift") else RIGHT
    for dtypes in itertools.product(DTYPES, repeat=min(arity, 2)):
        operands = [LEFT[dtypes[0]], right[dtypes[-1]], right[dtypes[-1]][::-1].copy()][:arity]
        if not defined(function, *(str(operand.dtype) for operand in operands)):
            continue
        if function in ("exp", "sinh", "cosh", "tan", "sin", "cos", "fpow", "pow", "tanh", "atan2"):
            operands = [np.clip(operand, 0, 30) if operand.dtype.kind != "b" else operand for operand in operands]
        got, expected = twin(function, *operands), ours(function, *operands)
        name = f"{function} {dtypes}"
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, expected, rtol=3e-6 if got.dtype == np.float32 else 1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=name)


def test_torch_broadcasts_and_refuses_zero() -> None:
    x, channel = np.arange(48, dtype=np.uint8).reshape(2, 4, 2, 3), np.array([[1, 2, 3], [4, 5, 6]], np.uint8)
    out = torch.empty((2, 4, 2, 3), dtype=torch.uint8)
    compute_torch("add", out, torch.from_numpy(x), torch.from_numpy(channel))
    np.testing.assert_array_equal(out.numpy(), x + channel[:, None, None, :])
    with pytest.raises(ArgumentValueError, match=r"integer division by zero\.") as caught:
        compute_torch("mod", out, torch.from_numpy(x), torch.zeros((2,), dtype=torch.uint8))
    assert caught.value.sample == 0
