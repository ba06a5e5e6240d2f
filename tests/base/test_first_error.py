"""Errors that wait until other work is done."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from dalify.base.first_error import FirstError


class Marker:
    """Something that a caller has."""


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_the_first_by_order_is_raised_once():
    first_error = FirstError()
    assert not first_error
    first_error.raise_first()
    for order, error in [(3, KeyError("late")), (1, ValueError("first")), (1, TypeError("as early")), (2, OSError())]:
        first_error.record(error, order)
    assert first_error
    with pytest.raises(ValueError, match="first"):
        first_error.raise_first()
    assert not first_error
    first_error.raise_first()


def outlives(work: Callable[[], None]) -> bool:
    def user() -> weakref.ref[Marker]:
        marker = Marker()
        reference = weakref.ref(marker)
        with pytest.raises(ZeroDivisionError):
            work()
        return reference

    return user()() is not None


def first_error() -> None:
    failure = FirstError()
    try:
        print(1 / 0)
    except ZeroDivisionError as error:
        failure.record(error)
    failure.raise_first()


def kept() -> None:
    failure = None
    try:
        print(1 / 0)
    except ZeroDivisionError as error:
        failure = error
    assert failure is not None
    raise failure


def test_references_of_callers_end_with_the_error():
    assert not outlives(first_error)
    assert outlives(kept)  # what the class is for
