"""Errors that wait until other work is done."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from dalify.base.held_error import HeldError


class Marker:
    """Something that a caller has."""


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_the_first_by_order_is_raised_once():
    held = HeldError()
    assert not held
    held.release()
    for order, error in [(3, KeyError("late")), (1, ValueError("first")), (1, TypeError("as early")), (2, OSError())]:
        held.hold(error, order)
    assert held
    with pytest.raises(ValueError, match="first"):
        held.release()
    assert not held
    held.release()


def outlives(work: Callable[[], None]) -> bool:
    def user() -> weakref.ref[Marker]:
        marker = Marker()
        reference = weakref.ref(marker)
        with pytest.raises(ZeroDivisionError):
            work()
        return reference

    return user()() is not None


def held() -> None:
    failure = HeldError()
    try:
        print(1 / 0)
    except ZeroDivisionError as error:
        failure.hold(error)
    failure.release()


def kept() -> None:
    failure = None
    try:
        print(1 / 0)
    except ZeroDivisionError as error:
        failure = error
    assert failure is not None
    raise failure


def test_what_callers_have_ends_with_the_error():
    assert not outlives(held)
    assert outlives(kept)  # what the class is for
