"""The errors that users meet: one class per kind of mistake.

Each says what is wrong, where (the user's line, the operator, the sample and where it came from) and what to write
instead. The classes derive from the built-in types that DALI raises in the same situation, so that existing
``except`` clauses hold. DALI checks the same mistake in Python or in its compiled part, depending on the operator and
on how an argument was given, and raises TypeError, ValueError or RuntimeError for it: errors about arguments are all.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from dalify.base.source_line import SourceLine

__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "BadSampleWarning",
    "BatchSizeError",
    "CacheError",
    "CheckpointError",
    "ConditionError",
    "DTypeError",
    "DalifyError",
    "DecodeError",
    "DeviceError",
    "DivergentBranchesError",
    "ErrorRateError",
    "GraphError",
    "IndexingError",
    "IntegerRangeError",
    "LayoutError",
    "LimitError",
    "MissingPackageError",
    "MixedBatchError",
    "NoGraphError",
    "NotAcceleratedError",
    "OperatorError",
    "PipelineStateError",
    "ReaderError",
    "SerializationError",
    "ShapeError",
    "SourceError",
    "UnknownArgumentError",
    "UnknownInputError",
    "UnknownOperatorError",
    "UnsupportedModeError",
    "UnsupportedSyntaxError",
    "WorkerError",
    "of_sample",
    "option_error_text",
    "suggestion",
]


class DalifyError(Exception):
    """Base of all errors that dalify raises on purpose.

    Args:
        message: what is wrong, one sentence.
        line: the user's line that caused it.
        hint: what to write instead.
        operator: public name, e.g. ``fn.resize``.
        sample: its place in the batch.
    """

    def __init__(
        self,
        message: str,
        *,
        line: SourceLine | None = None,
        hint: str = "",
        operator: str | None = None,
        sample: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.hint = hint
        self.operator = operator
        self.sample = sample
        self.origin: str | None = None

    def locate(
        self,
        *,
        line: SourceLine | None = None,
        operator: str | None = None,
        sample: int | None = None,
        origin: str | None = None,
    ) -> None:
        """Fill in what is not known yet: the rooms closest to the mistake speak first."""
        self.line = self.line or line
        if operator is not None and not operator.startswith("fn._"):  # those are ours: users did not write them
            self.operator = self.operator or operator
        self.sample = sample if self.sample is None else self.sample
        self.origin = self.origin or origin

    def __str__(self) -> str:
        """Return message, place and way out, one below the other."""
        head = self.message
        if self.operator and self.operator not in head:
            head = f"{self.operator}: {head}"
        parts = [head]
        if self.sample is not None or self.origin:
            where = [] if self.sample is None else [f"sample {self.sample} of the batch"]
            where += [f"from {self.origin}"] if self.origin else []
            parts.append("  " + ", ".join(where))
        if self.line is not None:
            parts.append(self.line.quote())
        if self.hint:
            parts.append(f"  {self.hint}")
        return "\n".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with all attributes but the executor's notes: errors travel from worker processes."""
        state = {name: value for name, value in self.__dict__.items() if not name.startswith("__dalify")}
        return (_rebuild, (type(self), self.message, state))


def _rebuild(kind: type[DalifyError], message: str, state: dict[str, object]) -> DalifyError:
    error = kind(message)
    error.__dict__.update(state)
    return error


class UnknownOperatorError(DalifyError, AttributeError, KeyError):
    """A name that is no operator of dalify."""


class UnknownArgumentError(DalifyError, TypeError, KeyError, RuntimeError):
    """A keyword that the operator or pipeline does not take."""


class ArgumentTypeError(DalifyError, TypeError, RuntimeError, ValueError):
    """An argument of a type that cannot be used."""


class ArgumentValueError(DalifyError, ValueError, RuntimeError, TypeError):
    """An argument, or a combination of arguments, out of its range."""


class UnsupportedModeError(ArgumentValueError, NotImplementedError):
    """A mode that other libraries have and dalify has not."""


class ConditionError(DalifyError, TypeError, RuntimeError, ValueError):
    """A graph value used as a condition that cannot be one."""


class UnsupportedSyntaxError(DalifyError, TypeError, RuntimeError):
    """A Python construct that cannot become part of a graph."""


class DivergentBranchesError(DalifyError, ValueError, RuntimeError):
    """The two branches of a condition give values that cannot be merged."""


class GraphError(DalifyError, TypeError, RuntimeError, ValueError):
    """A value that cannot be part of a graph, or a graph that cannot be built."""


class CacheError(GraphError):
    """What should be cached is not the same in each epoch."""


class LayoutError(DalifyError, RuntimeError, ValueError):
    """A layout that does not fit the operator or the other operand."""


class DTypeError(DalifyError, TypeError, RuntimeError, ValueError):
    """An element type that does not fit."""


class ShapeError(DalifyError, ValueError, RuntimeError, TypeError):
    """A shape, or a number of dimensions, that does not fit."""


class IndexingError(DalifyError, IndexError, RuntimeError, ValueError):
    """An index or window outside the data."""


class IntegerRangeError(DalifyError, OverflowError, RuntimeError):
    """An integer that does not fit its element type."""


class DeviceError(DalifyError, RuntimeError, ValueError):
    """A device that is absent, or that the operator cannot use."""


class SourceError(DalifyError, RuntimeError, TypeError, ValueError):
    """External data, or its source, that cannot be used."""


class BatchSizeError(DalifyError, RuntimeError, ValueError):
    """A batch of a size that the pipeline cannot take."""


class ReaderError(DalifyError, RuntimeError, ValueError, FileNotFoundError):
    """Files or folders that a reader cannot use."""


class DecodeError(DalifyError, RuntimeError, ValueError):
    """Bytes that are no picture, sound or film that can be decoded."""


class MixedBatchError(DalifyError, TypeError, RuntimeError, ValueError):
    """A sample whose data have another element type or number of dimensions than the first one of the batch."""


class LimitError(DecodeError):
    """A sample that is larger than a limit allows; see ``dalify.limits``."""


class OperatorError(DalifyError, RuntimeError, ValueError):
    """An operator that failed for a reason that dalify did not expect; the exception is its ``__cause__``."""


class ErrorRateError(DalifyError, RuntimeError):
    """More bad samples than ``max_error_rate`` allows."""


class WorkerError(DalifyError, RuntimeError):
    """A worker process that died or cannot be used."""


class PipelineStateError(DalifyError, RuntimeError):
    """A pipeline method called at the wrong time."""


class UnknownInputError(PipelineStateError, KeyError):
    """Data for an input that the pipeline does not have."""


class NoGraphError(PipelineStateError, NotImplementedError):
    """A pipeline whose outputs nobody defined."""


class SerializationError(DalifyError, RuntimeError, TypeError):
    """A graph that cannot be written down, or a text that is no graph."""


class CheckpointError(DalifyError, RuntimeError, ValueError, KeyError, TypeError):
    """A saved state that does not belong to this pipeline."""


class BadSampleWarning(UserWarning):
    """Samples of an epoch that could not be read or decoded."""


class NotAcceleratedError(DalifyError, RuntimeError):
    """A DataLoader leaves the work to torch, and the user wished to know."""


class MissingPackageError(DalifyError, ImportError):
    """An optional package that is needed here and not installed."""


def of_sample(error: Exception, sample: int) -> None:
    """Note which sample of a group an error belongs to, for whoever called a kernel.

    Args:
        error: of any class.
        sample: number within the group.
    """
    error.sample = sample  # pyright: ignore[reportAttributeAccessIssue]


def suggestion(name: str, choices: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest choice, or ""."""
    close = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""


def option_error_text(argument: str, value: object, options: Iterable[object]) -> str:
    """Return ``argument must be one of a, b, c; got 'd'.`` with a suggestion where one is close."""
    names = [str(option) for option in options]
    return f"{argument} must be one of {', '.join(names)}; got {value!r}.{suggestion(str(value), names)}"
