"""dalify.math compared with the real DALI, for every element type and numpy."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from dalify import fn, math, pipeline_def
from dalify.base.errors import ArgumentTypeError

UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "exp",
    "fabs",
    "floor",
    "log",
    "log10",
    "log2",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
BINARY = ["atan2", "fpow", "max", "min", "pow"]
TYPES = [
    np.bool_,
    np.uint8,
    np.int8,
    np.uint16,
    np.int16,
    np.uint32,
    np.int32,
    np.uint64,
    np.int64,
    np.float32,
    np.float64,
]
VALUES = np.array([0, 1, 2, 3, 7, 100, -1, -2, -100, 0.5, -0.5, 0.25])
NUMPY = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atanh": "arctanh",
}


def always(x):
    """A source that gives the same sample again and again."""
    return lambda: x[None]


def computed(package, function, *operands, **constants):
    """Return the result of `package.math` for batches of one sample; None if it raises an error."""
    library = importlib.import_module(package)
    own_fn, own_math = (importlib.import_module(f"{package}.{name}") for name in ("fn", "math"))

    @library.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline():
        nodes = [own_fn.external_source(source=always(x), batch=True) for x in operands]
        return getattr(own_math, function)(*nodes, *constants.values())

    try:
        built = pipeline()
        built.build()
        return np.array(built.run()[0][0])
    except (RuntimeError, TypeError, ValueError):
        return None


def values_of(dtype):
    """Values that the type has."""
    kept = VALUES if np.dtype(dtype).kind in "if" else VALUES[VALUES >= 0]
    return kept.astype(dtype)


def assert_alike(ours, theirs):
    """Raise unless both raised errors, or type and values are equal."""
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(
            ours.astype(np.float64),
            theirs.astype(np.float64),
            rtol=3e-6 if ours.dtype == np.float32 else 1e-12,
            atol=1e-7,
        )


def test_all_functions_exist(oracle):
    theirs = importlib.import_module("nvidia.dali.math")
    names = {name for name in dir(theirs) if callable(getattr(theirs, name)) and not name.startswith("_")}
    assert names == set(math.__all__)
    assert names == {*UNARY, *BINARY, "clamp"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", TYPES)
def test_functions_of_one_operand_compared_with_dali(oracle, dtype):
    for name in UNARY:
        x = values_of(dtype)
        if name == "rsqrt":
            x = x[x != 0]  # infinite here, NaN in DALI's approximation
        assert_alike(computed("dalify", name, x), computed("nvidia.dali", name, x))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", TYPES)
def test_functions_of_two_operands_compared_with_dali(oracle, dtype):
    x = values_of(dtype)
    for name in BINARY:
        for other in (np.float32, np.int16, dtype):
            y = np.resize(np.array([2, 1, 3], other), x.shape)
            assert_alike(computed("dalify", name, x, y), computed("nvidia.dali", name, x, y))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", TYPES)
def test_clamp_compared_with_dali(oracle, dtype):
    x = values_of(dtype)
    for low, high in ((1, 3), (0.5, 2.5)):
        constants = {"low": low, "high": high}
        assert_alike(computed("dalify", "clamp", x, **constants), computed("nvidia.dali", "clamp", x, **constants))


@pytest.mark.parametrize("name", sorted({*UNARY} - {"rsqrt", "fabs", "ceil", "floor", "abs"}))
def test_compared_with_numpy(name):
    x = np.array([0.5, 0.25, 0.9], np.float32) if "h" not in name[-1:] else np.array([1.5, 2.0, 0.7], np.float32)
    with np.errstate(invalid="ignore"):
        wanted = getattr(np, NUMPY.get(name, name))(x)
    np.testing.assert_allclose(computed("dalify", name, x), wanted, rtol=1e-6)


def test_operands_that_are_not_numbers():
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline():
        return math.max(fn.random.uniform(), "a")

    with pytest.raises(ArgumentTypeError, match=r"must be a number, an array or a graph value; got .a."):
        pipeline()
