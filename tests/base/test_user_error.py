"""Exceptions of users' functions can be caught as their own class and, as in DALI, as RuntimeError."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import eager, fn, pipeline_def
from dalify.base.errors import SourceError
from dalify.base.user_error import as_runtime_error


class WithArgumentsError(Exception):
    """An exception with a constructor argument that is not in ``args``."""

    def __init__(self, code: int, *, place: str) -> None:
        super().__init__(f"code {code}")
        self.code = code
        self.place = place

    def __str__(self) -> str:
        return f"{self.code} in {self.place}"


class WithSlotsError(ValueError):
    __slots__ = ("place",)

    def __init__(self, place: str) -> None:
        super().__init__("no")
        self.place = place


ERRORS: list[Exception] = [
    KeyError("oops"),
    Exception("plain"),
    ZeroDivisionError("division"),
    FileNotFoundError(2, "no such file", "a.jpg"),
    OSError("text"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    AttributeError("no attribute", name="x", obj=3),
    ImportError("no module", name="x", path="y"),
    AssertionError(),
    ExceptionGroup("several", [ValueError("one")]),
    WithArgumentsError(3, place="here"),
    WithSlotsError("here"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_both_classes(error: Exception) -> None:
    made = as_runtime_error(error)
    for found in (made, pickle.loads(pickle.dumps(made))):
        assert isinstance(found, RuntimeError)
        assert isinstance(found, type(error))
        assert str(found) == str(error)
        assert repr(found.args) == repr(error.args)
        assert type(found).__name__ == type(error).__name__
        for name in ("errno", "filename", "code", "place", "name", "path", "start"):
            assert getattr(found, name, None) == getattr(error, name, None)


def test_errors_that_are_not_converted() -> None:
    """RuntimeErrors are not changed, and neither are classes that cannot be combined."""
    error = RecursionError("deep")
    assert as_runtime_error(error) is error

    class FinalError(Exception):
        def __init_subclass__(cls) -> None:
            raise TypeError("final")

    final = FinalError("x")
    assert as_runtime_error(final) is final


def fails(x: Any) -> Any:
    raise WithArgumentsError(int(np.max(x)), place="fails")


def ends(x: Any) -> Any:
    raise StopIteration


MODES: dict[str, dict[str, Any]] = {
    "pipeline": {},
    "debug": {"debug": True},
    "one after the other": {"exec_async": False, "exec_pipelined": False, "exec_dynamic": False},
    "processes": {"processes": 1},
}


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_of_a_function(mode: str, whole: bool) -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, **MODES[mode])
    def pipeline():
        x = fn.external_source(source=lambda: np.int32([[3], [3]]))
        return fn.python_function(x, function=fails, batch_processing=whole, parallel=mode == "processes")

    pipe = pipeline()
    with pytest.raises(RuntimeError, match="3 in fails") as caught:
        pipe.run()
    assert isinstance(caught.value, WithArgumentsError)
    assert caught.value.code == 3
    assert "fn.python_function at test_user_error.py" in "".join(caught.value.__notes__)
    with pytest.raises(WithArgumentsError):  # the next batch
        pipe.run()
    pipe.close()


def test_of_immediate_calls() -> None:
    for call in (lambda: eager.python_function(np.int32([3]), function=fails), _lazily):
        with pytest.raises(RuntimeError, match="3 in fails") as caught:
            call()
        assert isinstance(caught.value, WithArgumentsError)


def _lazily() -> Any:
    with dalify.lazy():
        return np.asarray(eager.python_function(np.int32([3]), function=fails))


def test_a_function_does_not_end_the_epoch() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipeline():
        return fn.python_function(fn.external_source(source=lambda: np.int32([3, 3])), function=ends)

    with pytest.raises(SourceError, match="raised StopIteration"):
        pipeline().run()


def test_external_sources_raise_what_their_callbacks_raise() -> None:
    """In DALI, too."""

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipeline():
        return fn.external_source(source=lambda: fails(3))

    with pytest.raises(WithArgumentsError) as caught:
        pipeline().run()
    assert not isinstance(caught.value, RuntimeError)
