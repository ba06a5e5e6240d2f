"""Operators between graph values compared with the real DALI, on both devices."""

from __future__ import annotations

import operator as python_operator

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError
from tests.helpers.both import assert_same_as_dali, run_here

RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(1, 256, (4, 5, 3), dtype=np.uint8) for _ in range(3)]
FACTORS = [np.array([1, 2, 3], np.float32) * number for number in (1, 2, 3)]
SCALARS = [np.int32(number) for number in (1, -2, 30)]

SYMBOLS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "le", "gt", "ge", "eq", "ne"]


@pytest.mark.parametrize("name", SYMBOLS)
def test_symbols(device, name):
    apply = getattr(python_operator, name)

    def graph(dali, x, factor, scalar):
        return [
            apply(x, 3), apply(3, x), apply(x, 2.5), apply(2.5, x), apply(x, x),
            apply(x, factor), apply(factor, x), apply(x, scalar), apply(scalar, x),
        ]  # fmt: skip

    assert_same_as_dali(graph, IMAGES, FACTORS, SCALARS, device=device, rtol=1e-6)


def test_bits_powers_and_signs(device):
    def graph(dali, x, scalar):
        count = dali.fn.cast(x % 8, dtype=dali.types.UINT8)
        return [
            x & 5, x | scalar, x ^ x, x << count, x >> count, scalar << 2, ~x, -x, +x, -scalar, abs(scalar),
            x**2, 2**count, scalar**2, x**2.0, (x > 100) & (x < 200), (x > 100) | (x < 50), ~(x > 100), (x > 3) * 2,
        ]  # fmt: skip

    assert_same_as_dali(graph, IMAGES, SCALARS, device=device, rtol=1e-6)


def test_layouts(device):
    def graph(dali, x, factor, scalar):
        rows = dali.fn.reshape(factor, layout="C")
        return [
            x + 1,
            x + factor,
            x * rows,
            rows * x,
            x + scalar,
            factor + factor,
            dali.fn.reshape(x, layout="") + rows,
        ]

    assert_same_as_dali(graph, IMAGES, FACTORS, SCALARS, layouts=["HWC", "", ""], device=device)


def test_ragged_samples(device):
    ragged = [RNG.integers(0, 256, (rows, 5, 3), dtype=np.uint8) for rows in (2, 4, 3)]

    def graph(dali, x, factor, scalar):
        return [x * factor + scalar, x + x]

    assert_same_as_dali(graph, ragged, FACTORS, SCALARS, device=device, rtol=1e-6)


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (lambda x: (x > 1) + (x > 2), DTypeError, "not defined for booleans only"),
        (lambda x: x & 1.5, DTypeError, "integers or booleans"),
        (lambda x: x // 0, ArgumentValueError, "(?i)integer division by zero"),
        (lambda x: x[:2] + x[:3], ShapeError, "cannot be broadcast"),
        (lambda x: x + x[0], None, ""),
        (lambda x: x + x[:, 0], LayoutError, "'HC' and 'HWC'"),
    ],
)
def test_mistakes_are_named(mistake, error, message):
    def run():
        return run_here(lambda dali, x: [mistake(x)], IMAGES, layouts="HWC")

    if error is None:
        run()
    else:
        with pytest.raises(error, match=message):
            run()
