"""The location of an exception of any class, collected while the executor handles it."""

from __future__ import annotations

from typing import Any

from dalify.base.errors import DalifyError

_NAME = "__dalify_context__"


class FailureContext:
    """The location of an exception; see ``failure_context``.

    It refers to the graph, so it is empty after pickling.

    Attributes:
        sample: number of the sample in the chunk; None if the exception does not belong to a sample. It differs from
            ``DalifyError.sample`` if an eager operator failed that a user's function called.
        failure: the ``executor.steps.Failure`` with node, position in the batch and origin; None until it is set.
        note: the note with the location in an exception of the user's code; None until it is added.
    """

    __slots__ = ("failure", "note", "sample")

    def __init__(self) -> None:
        self.sample: int | None = None
        self.failure: Any = None
        self.note: str | None = None

    def __reduce__(self) -> tuple[type[FailureContext], tuple[()]]:
        """Pickle as an empty context."""
        return FailureContext, ()


def failure_context(error: BaseException) -> FailureContext:
    """Return the context of an exception; it is stored in the exception's attributes."""
    found = error.__dict__.get(_NAME)
    if found is None:
        found = error.__dict__[_NAME] = FailureContext()
    return found


def forget_location(error: Exception) -> None:
    """Remove the location of an earlier failure from an exception that user code has just raised, perhaps again."""
    context: FailureContext | None = error.__dict__.get(_NAME)
    if context is not None and not isinstance(error, DalifyError):  # those of operators that user code calls keep it
        del error.__dict__[_NAME]
        error.__notes__ = [note for note in getattr(error, "__notes__", ()) if note != context.note]
