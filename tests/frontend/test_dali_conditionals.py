"""Conditions in whole pipelines give the same results as in the real DALI."""

# ruff: noqa: SIM108, RET504, RET505 -- the programs are what is tested

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dalify
import dalify.fn
import dalify.types

NUMBERS = [np.array(number, np.int32) for number in range(-2, 6)]


def elif_chain(x, fn, types):
    y = x
    if x > 2:
        y = x + 1
    elif x == 0:
        y = x * 10
    else:
        y = -x
    return y


def constants(x, fn, types):
    if x > 2:
        y = 7
    elif x == 1:
        y = np.int32(5)
    else:
        y = x
    return y


def early_return(x, fn, types):
    if x < 0:
        return x * 2
    if x > 3:
        y = x - 1
        return y
    return fn.cast(x > 1, dtype=types.INT32)


def logic(x, fn, types):
    flag = (x > 0 and x < 4) or not x
    other = x > -1 and not (x == 2 or x == 3)
    if flag and (other or x == 3):
        return fn.stack(flag, other)
    else:
        return fn.stack(other, flag)


def stores(x, fn, types):
    box = SimpleNamespace(value=x)
    table = {"k": x}
    if x > 1:
        box.value = x + 1
        table["k"] = x * 2
    else:
        table["k"] += 5
    return box.value + table["k"]


def nested_structures(x, fn, types):
    if x > 1:
        pair = {"a": (x, [x + 1, 2])}
    else:
        pair = {"a": (x - 1, [1, x])}
    first, (second, third) = pair["a"]
    return fn.stack(first, second, third)


def helpers(x, fn, types):
    def limited(value, limit):
        return -value if value < limit else value

    total = x
    for limit in range(2):
        if x == limit:
            continue
        if limited(x, limit) > 2:
            total = total + limit + 1
    return total


def other_sizes(x, fn, types):
    data = fn.stack(x, x + 1)
    if x > 1:
        data = fn.cat(data, data)
    return data


def outputs(package: ModuleType, fn: Any, types: Any, program: Callable[..., Any]) -> list[np.ndarray]:
    @package.pipeline_def(batch_size=len(NUMBERS), num_threads=1, device_id=None, enable_conditionals=True)
    def pipeline():
        x = fn.external_source(lambda: NUMBERS, batch=True)
        return program(x, fn, types)

    built = pipeline()
    built.build()
    (result,) = built.run()
    return [np.asarray(result[number]) for number in range(len(NUMBERS))]


PROGRAMS = [elif_chain, constants, early_return, logic, stores, nested_structures, other_sizes]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_equals_dali(oracle: ModuleType, program: Callable[..., Any]) -> None:
    expected = outputs(oracle, oracle.fn, oracle.types, program)
    found = outputs(dalify, dalify.fn, dalify.types, program)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_a_ternary_in_a_helper() -> None:
    """DALI rejects the ternary."""
    found = outputs(dalify, dalify.fn, dalify.types, helpers)
    assert [int(number) for number in found] == [helpers(int(number), None, None) for number in NUMBERS]
