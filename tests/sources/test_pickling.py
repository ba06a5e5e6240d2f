"""Pickled callbacks: lambdas, closures, recursion, globals, and objects pickled by reference."""

import functools
import math

import numpy as np
import pytest

from dalify.base.errors import ArgumentTypeError
from dalify.sources.pickling import CallbackPickler, dumps, loads, pickle_by_value

FACTOR = 3


def by_reference(value):
    return value * FACTOR


def test_importable_functions_stay_what_they_are():
    assert loads(dumps(by_reference)) is by_reference
    assert loads(dumps(np.zeros)) is np.zeros


def test_lambdas_take_closure_globals_and_modules_along():
    offset = [10]
    copy = loads(dumps(lambda value: math.floor(np.float64(value)) * FACTOR + offset[0]))
    assert copy(2.5) == 16
    offset[0] = 0
    assert copy(2.5) == 16  # by value


def test_nested_code_finds_its_globals():
    copy = loads(dumps(lambda: [by_reference(value) for value in (lambda: range(FACTOR))()]))
    assert copy() == [0, 3, 6]


def test_defaults_attributes_and_keywords():
    def function(a, b=2, *, c=3):
        return a + b + c

    function.note = "kept"
    copy = loads(dumps(function))
    assert copy(1) == 6
    assert copy(1, c=0) == 3
    assert copy.note == "kept"
    assert copy.__qualname__ == function.__qualname__


def test_functions_that_name_themselves_and_each_other():
    def even(number):
        return number == 0 or odd(number - 1)

    def odd(number):
        return number > 0 and even(number - 1)

    assert loads(dumps(even))(10)


def test_unset_names_stay_unset():
    def function():
        return later  # noqa: F821 -- deleted below

    later = 1
    del later
    with pytest.raises(NameError):
        loads(dumps(function))()


def test_generator_functions_partials_and_methods():
    def generate(count):
        yield from range(count)

    assert list(loads(dumps(functools.partial(generate, 3)))()) == [0, 1, 2]


def test_pickle_by_value_marks_importable_functions():
    marked = pickle_by_value(by_reference)
    try:
        copy = loads(dumps(marked))
        assert copy is not by_reference
        assert copy(2) == 6
    finally:
        del by_reference._dalify_pickle_by_value
    with pytest.raises(ArgumentTypeError, match="only functions"):
        pickle_by_value(5)


def test_picklers_given_as_tuples():
    with pytest.raises(ArgumentTypeError, match="must have dumps and loads"):
        CallbackPickler((1, 2, 3, 4))
    with pytest.raises(ArgumentTypeError, match="must have dumps and loads"):
        CallbackPickler(())
    content, load = CallbackPickler().dumps(lambda: 5, "name", None)
    assert load(content)() == 5
