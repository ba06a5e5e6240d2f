"""What a rewritten function is to Python's own tools, and which functions are never rewritten."""

# ruff: noqa: SIM108, F841 -- the programs are what is tested

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import inspect
import json
import linecache
import traceback
import weakref
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify.base.errors import ConditionError, UnsupportedSyntaxError
from dalify.base.source_line import SourceLine
from dalify.frontend import do_not_convert, is_rewritable, rewrite
from dalify.graph import current_branch
from tests.frontend.fake_graph import check, fake_graph, node, run, traced

NUMBERS = [(number,) for number in range(-2, 6)]


def failing(x):
    if x > 1:
        y = x
    else:
        y = one_over(x, 0)
    return y


def one_over(x, divisor):
    # A comment, to have the lines differ.
    return x > 0 and (
        x if x > 3 else 1 / divisor  # this is the line
    )


def test_tracebacks_show_the_users_lines() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        traced(failing, "x")
    frames = traceback.extract_tb(caught.tb)
    own = [(frame.name, frame.line) for frame in frames if frame.filename == __file__][1:]
    # The lazy operands are functions of their own; they go by the name of the function that they stand in.
    assert own == [
        ("failing", "y = one_over(x, 0)"),
        ("one_over", "return x > 0 and ("),
        ("one_over", "x if x > 3 else 1 / divisor  # this is the line"),
        ("one_over", "x if x > 3 else 1 / divisor  # this is the line"),
    ]
    assert current_branch() is None


def test_lines_of_nodes() -> None:
    places = []

    def here():
        places.append(SourceLine.capture())
        return 1

    def function(x):
        x = here()
        return (
            here()
            + here()
        )  # fmt: skip

    first = function.__code__.co_firstlineno
    rewrite(function)(1)
    del places[:]
    do_not_convert(here)
    traced(function, "x")
    assert [place.line - first for place in places if place is not None] == [-3, -3, -3]


def test_python_finds_the_source() -> None:
    rewritten = rewrite(failing)
    assert inspect.getsource(rewritten) == inspect.getsource(failing)
    assert inspect.signature(rewritten) == inspect.signature(failing)
    assert rewritten.__code__.co_filename == __file__
    assert rewritten.__globals__ is globals()


def test_code_is_compiled_once_and_freed_with_the_function() -> None:
    def function(x):
        return x if x > 1 else 0

    first, second = rewrite(function), rewrite(function)
    assert first is not second
    assert first.__code__ is second.__code__
    text = "def passing(x):\n    return x if x > 1 else 0\n"
    linecache.cache["<passing>"] = (len(text), None, text.splitlines(keepends=True), "<passing>")
    namespace: dict[str, Any] = {}
    exec(compile(text, "<passing>", "exec"), namespace)
    code = weakref.ref(rewrite(namespace["passing"]).__code__)
    namespace.clear()
    del linecache.cache["<passing>"]
    gc.collect()
    assert code() is None


def test_what_is_never_rewritten() -> None:
    class Thing:
        def __init__(self) -> None:
            self.value = 1 if Thing else 2

    @functools.lru_cache
    def cached(x):
        return 1 if x else 2

    @do_not_convert
    def marked(x):
        return 1 if x else 2

    async def asynchronous(x):
        return 1 if x else 2

    never = [
        Thing,
        len,
        print,
        np.mean,
        np.ones,
        json.dumps,
        str.join,
        "a".join,
        cached,
        asynchronous,
        rewrite,
        pytest.skip,
    ]
    for function in [*never, marked, functools.partial(marked, 1), contextlib.nullcontext]:
        assert not is_rewritable(function), function
    assert is_rewritable(failing)
    assert is_rewritable(functools.partial(failing, 1))
    assert rewrite(marked) is marked


def test_marked_functions_receive_graph_values() -> None:
    @do_not_convert
    def marked(x):
        return 1 if x > 1 else 2

    with pytest.raises(ConditionError, match="functions marked with @do_not_convert"):
        traced(lambda x: marked(x), "x")


def test_functions_without_source_run_as_they_are() -> None:
    namespace: dict[str, Any] = {}
    exec("def typed(x):\n    return 1 if x > 1 else 2", namespace)
    typed = namespace["typed"]
    assert rewrite(typed) is typed
    assert not is_rewritable(typed)
    with pytest.raises(ConditionError, match="has no source file: save it in a file"):
        traced(lambda x: typed(x), "x")


def test_functions_of_a_zip_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "program.zip", "w") as file:
        file.writestr("zipped_functions.py", "def function(x):\n    return 1 if x > 1 else 2\n")
    monkeypatch.syspath_prepend(tmp_path / "program.zip")
    check(importlib.import_module("zipped_functions").function, (0,), (2,))


def test_callbacks_that_are_only_passed_stay_as_they_are() -> None:
    received = []

    def callback(sample):
        return 1 if sample else 2

    @do_not_convert
    def external_source(source):
        received.append(source)

    def function(x):
        def inner(sample):
            return 1 if sample else 2

        external_source(source=callback)
        external_source(inner)
        return x if x > 1 else 0

    traced(function, "x")
    assert received[0] is callback
    assert "dalify__" not in received[1].__code__.co_freevars


def test_long_elif_chains() -> None:
    lines = ["def function(x):", "    if x == 0:", "        y = 100"]
    for number in range(1, 60):
        lines += [f"    elif x == {number}:", f"        y = x + {number}"]
    text = "\n".join([*lines, "    else:", "        y = -1", "    return y", ""])
    linecache.cache["<chain>"] = (len(text), None, text.splitlines(keepends=True), "<chain>")
    namespace: dict[str, Any] = {}
    exec(compile(text, "<chain>", "exec"), namespace)
    check(namespace["function"], (0,), (30,), (59,), (60,))


def test_errors_that_are_caught_leave_their_branches() -> None:
    def refuse(x):
        if x > 2:
            nothing = x.no_such_attribute
        return 1

    def function(x):
        box = {"k": 0}
        if x > 1:
            try:
                if x > 3:
                    box["k"] = 5
                    y = refuse(x)
            except AttributeError:
                y = 7
        else:
            y = 1
        with contextlib.suppress(AttributeError):
            if x > 4:
                refuse(x)
        return y + x, box["k"]

    graph = traced(function, "x")
    assert [run(graph, {"input_0": 0, "x": number}) for number in (0, 2, 5)] == [(1, 0), (9, 0), (12, 0)]


def test_a_jump_out_of_a_with_is_executed_by_python() -> None:
    def function(x, flag=True):
        for i in range(5):
            with contextlib.nullcontext():
                if flag:
                    if i == 2:
                        continue
                    if i == 4:
                        break
                x = x + i
        return x

    check(function, *NUMBERS)


def test_too_many_paths_are_refused_only_for_graph_values() -> None:
    lines = ["def function(x, p):"]
    for number in range(12):
        lines += [f"    if p > {number}:", f"        if x > {number}:", f"            return {number}"]
    text = "\n".join([*lines, "    return x", ""])
    linecache.cache["<paths>"] = (len(text), None, text.splitlines(keepends=True), "<paths>")
    namespace: dict[str, Any] = {}
    exec(compile(text, "<paths>", "exec"), namespace)
    function = namespace["function"]
    assert rewrite(function)(3, 2) == function(3, 2) == 0
    with fake_graph(), pytest.raises(UnsupportedSyntaxError, match="return it at the end"):
        rewrite(function)(node("x"), node("p"))


def repeated(x, times):
    if times:
        x = repeated(x + 1 if x > 0 else x - 1, times - 1)
    return x


def halved(x):
    return -x if x > 0 else x


class Recursive:
    @staticmethod
    def repeated(x, times):  # the name of a function of the module, which it calls
        return Recursive.repeated(repeated(x, 1), times - 1) if times else x

    def halved(self, x):
        return halved(x) if x > 1 else x

    def __hidden(self, x, times):
        return self.__hidden(x * 2, times - 1) if times and x > 0 else x

    def hidden(self, x):
        return self.__hidden(x, 3)


@functools.lru_cache
def factorial(n):
    return n * factorial(n - 1) if n else 1


def test_functions_that_call_themselves() -> None:
    def inner(x, times):
        return inner(x + 1 if x > 0 else x, times - 1) if times else x

    check(lambda x: repeated(x, 3), *NUMBERS)
    check(lambda x: Recursive.repeated(x, 2), *NUMBERS)
    check(lambda x: Recursive().halved(x), *NUMBERS)
    check(lambda x: Recursive().hidden(x) if x < 3 else x, *NUMBERS)
    check(lambda x: inner(x, 2) + factorial(4), *NUMBERS)


def test_a_function_that_calls_itself_finds_its_name_when_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    first = rewrite(repeated)
    monkeypatch.setitem(globals(), "repeated", lambda x, times: "replaced")
    assert first(1, 1) == "replaced"
