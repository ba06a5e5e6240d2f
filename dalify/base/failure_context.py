"""The location of an exception of any class, collected while the executor handles it."""

from __future__ import annotations

from typing import Any

__all__ = ["FailureContext", "failure_context"]

_NAME = "__dalify_context__"


class FailureContext:
    """Where an exception happened. Every exception has at most one, see ``failure_context``.

    It refers to the graph, so it is empty after pickling.

    Attributes:
        sample: number of the sample in the chunk; None if the exception does not belong to a sample. It can differ from
            ``DalifyError.sample``: that is where an eager operator failed, which a user's function calls.
        failure: the ``executor.steps.Failure``: node, position in the batch, and origin; None until it is known.
        is_noted: the location has been added to an exception of the user's code as a note.
    """

    __slots__ = ("failure", "is_noted", "sample")

    def __init__(self) -> None:
        self.sample: int | None = None
        self.failure: Any = None
        self.is_noted = False

    def __reduce__(self) -> tuple[type[FailureContext], tuple[()]]:
        """Pickle as an empty context."""
        return FailureContext, ()


def failure_context(error: BaseException) -> FailureContext:
    """Return the context of an exception, which is stored with it."""
    found = error.__dict__.get(_NAME)
    if found is None:
        found = error.__dict__[_NAME] = FailureContext()
    return found
