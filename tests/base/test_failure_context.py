"""The data that the executor stores with exceptions."""

from __future__ import annotations

import pickle

import pytest

from dalify.base.errors import DecodeError
from dalify.base.failure_context import failure_context


@pytest.mark.parametrize("error", [ValueError("a"), DecodeError("a", hint="b"), KeyboardInterrupt()])
def test_every_exception_has_one_context(error: BaseException) -> None:
    context = failure_context(error)
    assert (context.sample, context.failure, context.note) == (None, None, None)
    context.sample = 3
    assert failure_context(error) is context
    assert failure_context(type(error)("other")).sample is None


@pytest.mark.parametrize("error", [ValueError("a"), DecodeError("a", hint="b")])
def test_it_is_empty_after_pickling(error: Exception) -> None:
    failure_context(error).sample = 3
    failure_context(error).failure = lambda: None  # cannot be pickled, like the graph
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert failure_context(copy).sample is None
    assert failure_context(copy).failure is None
