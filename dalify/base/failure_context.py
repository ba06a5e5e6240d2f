"""The location of an exception of any class, collected while the executor handles it."""

from __future__ import annotations

from typing import Any

_NAME = "__dalify_context__"


class FailureContext:
    """The location of an exception; see ``failure_context``.

    It refers to the graph, so it is empty after pickling.

    Attributes:
        sample: number of the sample in the chunk; None if the exception does not belong to a sample. It differs from
            ``DalifyError.sample`` if an eager operator failed that a user's function called.
        failure: the ``executor.steps.Failure`` with node, position in the batch and origin; None until it is set.
        is_noted: True if the location has been added to an exception of the user's code as a note.
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
    """Return the context of an exception; it is stored in the exception's attributes."""
    found = error.__dict__.get(_NAME)
    if found is None:
        found = error.__dict__[_NAME] = FailureContext()
    return found
