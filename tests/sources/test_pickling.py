"""Pickled callbacks: lambdas, closures, recursion, globals, and objects pickled by reference."""

import functools
import math
import subprocess
import sys

import numpy as np
import pytest

from dalify.base.errors import ArgumentTypeError
from dalify.sources.pickling import CallbackPickler, dumps, loads, pickle_by_value

FACTOR = 3


def by_reference(value):
    return value * FACTOR


def countdown(start, *, step=1):
    """Return numbers down to 1."""
    return [start, *countdown(start - step, step=step)] if start > 0 else []


def test_importable_functions_are_unchanged():
    assert loads(dumps(by_reference)) is by_reference
    assert loads(dumps(np.zeros)) is np.zeros


def test_lambdas_are_pickled_with_closure_globals_and_modules():
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


def test_functions_pickled_by_value_may_name_themselves():
    marked = pickle_by_value(countdown)
    try:
        copy = loads(dumps(marked))
        assert copy is not countdown
        assert copy.__globals__["countdown"] is copy
        assert (copy.__qualname__, copy.__module__, copy.__doc__) == ("countdown", __name__, countdown.__doc__)
        assert copy(3, step=2) == [3, 1]
        assert copy(2) == [2, 1]
    finally:
        del countdown._dalify_pickle_by_value


SCRIPT = """
import threading
from dalify.sources.pickling import dumps, loads

LOCK = threading.Lock()  # cannot be pickled

class Error(Exception):
    class Nested:
        pass

def function():
    with LOCK:
        return Error

def check():
    for value in (function, Error, Error.Nested):
        print(loads(dumps(value)) is value, end=" ")
    print(loads(dumps(lambda: Error))() is Error)

if __name__ == "__main__":
    check()
"""


def test_scripts_are_imported_by_workers(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    result = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert result.stdout.split() == ["True"] * 4, result.stderr


NOTEBOOK = """
import subprocess, sys
from dalify.sources.pickling import dumps

FACTOR = 3

class Value:
    number = 5

def function():
    return Value.number * FACTOR

program = "import pickle, sys; print(pickle.load(sys.stdin.buffer)())"
print(subprocess.run([sys.executable, "-c", program], input=dumps(function), capture_output=True, check=True).stdout)
"""


def test_what_a_notebook_defines_is_pickled_by_value():
    result = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == str(b"15\n"), result.stderr


def test_picklers_given_as_tuples():
    with pytest.raises(ArgumentTypeError, match="must have dumps and loads"):
        CallbackPickler((1, 2, 3, 4))
    with pytest.raises(ArgumentTypeError, match="must have dumps and loads"):
        CallbackPickler(())
    content, load = CallbackPickler().dumps(lambda: 5, "name", None)
    assert load(content)() == 5
