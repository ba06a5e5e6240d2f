"""Each construct, traced and run per sample, equals the same function run by Python on the numbers."""

# ruff: noqa: SIM102, SIM108, SIM201, SIM222, RET504, RUF034, F841 -- the programs are what is tested

from __future__ import annotations

import collections
import contextlib
import functools
from typing import Any, NamedTuple

import numpy as np
import pytest

from dalify.frontend import is_rewritable, rewrite
from tests.frontend.fake_graph import check, fake_graph, node, run, traced

NUMBERS = [(number,) for number in range(-2, 6)]
PAIRS = [(one, other) for one in range(-1, 4) for other in range(-1, 4)]


def test_if_else() -> None:
    def function(x):
        if x > 2:
            y = x + 1
        else:
            y = x * 2
        return y

    check(function, *NUMBERS)


def test_if_alone_keeps_the_value_from_before() -> None:
    def function(x):
        y = x
        if x > 2:
            y = y + 1
        return y

    check(function, *NUMBERS)


def test_elif_chain_with_constants() -> None:
    def function(x):
        if x < 0:
            y = 10
        elif x == 0:
            y = 20
        elif x == 1:
            y = x + 29
        else:
            y = 40
        return y

    check(function, *NUMBERS)


def test_nested_if() -> None:
    def function(x, y):
        z = 0
        if x > 1:
            if y > 1:
                z = x + y
            else:
                z = x - y
            z = z * 2
        elif y > 2:
            z = y
        return z

    check(function, *PAIRS)


def test_a_variable_read_and_rewritten_in_both_branches() -> None:
    def function(x):
        total = x
        if x > 0:
            total += 5
            x = total
        else:
            total -= 5
        return x + total

    check(function, *NUMBERS)


def test_ternary() -> None:
    check(lambda x: x + 1 if x > 2 else (x - 1 if x > 0 else 7), *NUMBERS)


def test_ternary_in_a_comprehension() -> None:
    check(lambda x: [x + i if x > i else -x for i in range(3)], *NUMBERS)


def test_and_or_not() -> None:
    def function(x, y):
        a = 1 if x > 0 and y > 0 else 0
        b = 1 if x > 2 or y > 2 else 0
        c = 1 if not (x > 0) else 0
        d = 1 if (x > 0 and y > 0 and x > y) or not x == y else 0
        return a, b, c, d

    check(function, *PAIRS)


def test_and_gives_a_boolean_value() -> None:
    check(lambda x, y: (x > 0 and y > 0, x > 0 or y > 0, not x > 0), *PAIRS)


def test_a_python_value_on_the_left_is_evaluated_by_python() -> None:
    check(lambda x: (3 and x, 0 or x, None or x, "" or x), *NUMBERS)


def test_chained_comparison() -> None:
    check(lambda x, y: (0 < x < 3, 1 if 0 <= x <= y != 2 else 0), *PAIRS)


def test_chained_comparison_evaluates_each_operand_once() -> None:
    evaluated = []

    def operand(value):
        evaluated.append(value)
        return value

    assert traced(lambda: operand(1) < operand(2) < operand(3) > operand(7) > operand(8)) is False
    assert evaluated == [1, 2, 3, 7]


def test_early_return() -> None:
    def function(x):
        if x < 0:
            return x
        if x > 3:
            y = x + 1
            return y
        y = x * 10
        return y + 1

    check(function, *NUMBERS)


def test_return_in_nested_branches() -> None:
    def function(x, y):
        if x > 0:
            if y > 0:
                return x
            z = y - 1
        else:
            if y > 1:
                z = 2
            else:
                return y * 5
        z = z + x
        if z > 1:
            return z
        return -z

    check(function, *PAIRS)


def test_return_inside_with_and_try() -> None:
    def function(x):
        with contextlib.nullcontext(3) as three:
            if x > 1:
                return x + three
            try:
                return x - three
            finally:
                x = 0

    check(function, *NUMBERS)


def test_no_path_returns_a_value() -> None:
    def function(x):
        if x > 1:
            return
        x = x + 1

    assert traced(function, "x") is None


def test_many_partial_returns_do_not_explode() -> None:
    def function(x, p=0):
        if p > 0:
            if x > 0:
                return 0
        if p > 1:
            if x > 1:
                return 1
        if p > 2:
            if x > 2:
                return 2
        if p > 3:
            if x > 3:
                return 3
        if p > 4:
            if x > 4:
                return 4
        if p > 5:
            if x > 5:
                return 5
        if p > 6:
            if x > 6:
                return 6
        if p > 7:
            if x > 7:
                return 7
        return x

    check(function, *NUMBERS)


def test_continue() -> None:
    def function(x):
        total = 0
        for i in range(4):
            if x > i:
                total = total + 1
                continue
            if i == 1:
                continue
            total = total + 10 * i
        return total

    check(function, *NUMBERS)


def test_python_control_flow_is_unchanged() -> None:
    def function(x):
        found = None
        for i in range(10):
            if i == 3:
                continue
            if i == 5:
                found = i
                break
        else:
            found = -1
        while found:
            found -= 1
            if found == 2:
                break
        if found == 2:
            for i in range(3):
                if i == 2:
                    return x + i
        return x

    check(function, *NUMBERS)


def test_only_one_branch_of_a_python_condition_runs() -> None:
    def function(x):
        if False:
            raise AssertionError
        y = x if True else 1 // 0
        return y and (True or 1 // 0)

    assert run(traced(function, "x"), {"x": 1}) is True


def test_python_undefined_variables_stay_pythons() -> None:
    def function(x):
        if False:
            y = x
        return y

    with pytest.raises(UnboundLocalError, match="'y'"):
        traced(function, "x")


class Settings:
    def __init__(self) -> None:
        self.gain: Any = 1
        self.table: dict[str, Any] = {"a": 1}

    def choose(self, x):
        if x > 2:
            self.gain = x
        else:
            self.gain += 4

    def __call__(self, x):
        return x + 1 if x > 0 else x

    def private(self, x):
        if x > 1:
            __hidden = self.__double(x)
        else:
            __hidden = 0
        self.__kept = __hidden
        return self.__kept

    def __double(self, x):
        return x * 2 if x > 2 else x

    @classmethod
    def of_class(cls, x):
        return cls.of_nothing(x) if x > 1 else 0

    @staticmethod
    def of_nothing(x):
        return 5 if x > 2 else 6


class MoreSettings(Settings):
    def __call__(self, x):
        return super().__call__(x) + 10 if x > 1 else super().__call__(x)


def test_attributes_and_items() -> None:
    def function(x):
        settings = Settings()
        items = {"k": x, "l": [0, 0]}
        settings.choose(x)
        if x > 1:
            items["k"] = x + 1
            items["l"][-1] = x
            settings.table["a"] = x
        else:
            items["l"][1] += 3
        return settings.gain, items, settings.table["a"]

    check(function, *NUMBERS)


def test_an_item_added_in_both_branches() -> None:
    def function(x):
        items = {}
        if x > 1:
            items["k"] = x
        else:
            items["k"] = 0
        return items

    check(function, *NUMBERS)


def test_objects_created_in_a_branch() -> None:
    def function(x):
        if x > 1:
            items = {}
            items["k"] = x
            values = [0, 0, 0]
            del values[2]
            values[0:2] = []
            array = np.zeros(2, int)
            array[0] += 3
            for i in range(2):
                values.append(x + i + int(array[0]) - 3)
        else:
            items = {"k": 0}
            values = [1, 2]
        return items, values

    check(function, *NUMBERS)


def test_stores_of_nested_conditions() -> None:
    def function(x, y):
        settings = Settings()
        if x > 1:
            settings.gain = 5
            if y > 1:
                settings.gain = y
            if y > 2:
                settings.gain = settings.gain + 1
        return settings.gain

    check(function, *PAIRS)


def test_deleting_in_both_branches() -> None:
    def function(x):
        items = {"a": x, "b": 2}
        if x > 1:
            del items["a"]
            items["b"] = 3
        else:
            del items["a"]
        return items

    check(function, *NUMBERS)


def test_methods_closures_partials_and_callable_objects() -> None:
    settings, more = Settings(), MoreSettings()

    def helper(x, limit):
        if x > limit:
            return x - limit
        return limit

    def function(x):
        def inner(z):
            return offset + z if z > 2 else helper(z, 1)

        offset = 3
        one = functools.partial(helper, limit=2)
        return (
            inner(x), one(x), settings(x), more(x), settings.private(x), Settings.of_class(x), settings.of_nothing(x),
            list(map(inner, [x, x + 1])), functools.reduce(lambda a, b: a if a > b else b, [x, 2]),
        )  # fmt: skip

    check(function, *NUMBERS)


def test_lambdas_on_one_line() -> None:
    def function(x):
        pair = [lambda z: 1 if z > 2 else 2, lambda z: 3 if z > 2 else 4]
        return pair[0](x), pair[1](x), (lambda a: (lambda a: 5 if a > 1 else 6)(a) if a > 2 else 7)(x)

    check(function, *NUMBERS)


def test_decorated_functions() -> None:
    def doubled(function):
        @functools.wraps(function)
        def wrapper(*args):
            result = function(*args)
            return result * 2 if result > 3 else result

        return wrapper

    @doubled
    def function(x):
        return x + 1 if x > 1 else x

    check(function, *NUMBERS)


def test_generators() -> None:
    def parts(x):
        for i in range(3):
            y = x if x > i else 0
            yield y + i

    check(lambda x: list(parts(x)), *NUMBERS)


counter: Any = 0


def test_global_and_nonlocal() -> None:
    last: Any = 0

    def count(x):
        global counter
        nonlocal last
        if x > 1:
            counter = x
            last = x + 1
        else:
            counter = counter + 1
        return counter

    def helper(x):
        nonlocal last
        last = x

    def function(x):
        global counter
        nonlocal last
        counter, last = 0, 0
        count(x)
        if x > 3:
            helper(x)
        return counter, last

    check(function, *NUMBERS)
    assert isinstance(counter, int)


def test_live_globals_and_cells() -> None:
    factor = 2

    def function(x):
        return x * factor

    with fake_graph():
        rewritten = rewrite(function)
        factor = 7
        assert rewritten(2) == 14


def test_walrus_with_and_try() -> None:
    def function(x):
        if (y := x + 1) > 2:
            with contextlib.nullcontext(5) as five:
                z = (w := five + y) + 1
        else:
            try:
                z = w = int("no number")
            except ValueError as problem:
                z = w = len(str(problem)) * 0
            finally:
                y = 3
        return y, z, w

    check(function, *NUMBERS)


class Pair(NamedTuple):
    first: Any
    second: Any


def test_nested_structures() -> None:
    def function(x):
        if x > 1:
            value = {"a": [x, (1, 2)], "b": Pair(x, "same")}
        else:
            value = {"b": Pair(3, "same"), "a": [2, (x, 2)]}
        return value

    check(function, *NUMBERS)


def test_arrays_and_equal_values() -> None:
    def function(x):
        if x > 1:
            name, array, flag, nothing = "a", np.arange(3), True, None
        else:
            name, array, flag, nothing = "a", np.zeros(3, int), True, None
        assert (name, flag, nothing) == ("a", True, None)
        return array

    check(function, *NUMBERS)


def test_unused_divergent_variables_are_allowed() -> None:
    def function(x):
        if x > 1:
            mode = "big"
            for i in range(2):
                x = x + i
        else:
            mode = None
            import math

            x = x + math.floor(1.5)
        return x

    check(function, *NUMBERS)


def test_function_attributes_survive() -> None:
    def function(x: int, y: str = "a", *, z: float = 1.5) -> None:
        """Do something."""
        str(x)

    function.note = 5  # type: ignore[attr-defined]
    rewritten = rewrite(function)
    assert rewritten is not function
    for name in (
        "__name__",
        "__qualname__",
        "__doc__",
        "__defaults__",
        "__kwdefaults__",
        "__annotations__",
        "__module__",
        "__dict__",
    ):
        assert getattr(rewritten, name) == getattr(function, name), name
    assert rewritten.__code__.co_qualname == function.__code__.co_qualname
    assert rewritten.__code__.co_firstlineno == function.__code__.co_firstlineno
    assert is_rewritable(function)
    assert rewrite(rewritten) is rewritten


def test_match_on_python_values() -> None:
    def function(x):
        match [1, {"k": 2}]:
            case [int(a), {"k": b, **rest}] if a == 1:
                y = x if x > b else a
            case _:
                y = 0
        return y, rest

    check(function, *NUMBERS)


def test_the_same_object_remains_the_same() -> None:
    marker = collections.OrderedDict()

    def function(x):
        if x > 1:
            value = marker
        else:
            value = marker
        return value

    assert traced(function, "x") is marker
    with fake_graph():
        x = node("x")
        assert traced(lambda condition: x if condition > 1 else x, "c") is x
