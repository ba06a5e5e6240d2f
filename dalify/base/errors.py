"""The errors of dalify: one class per kind of mistake.

Messages contain the problem, its location (the user's line, the operator, the sample and its origin) and a hint. The
classes derive from the built-in types that DALI raises in the same situation, so that existing ``except`` clauses work.
Depending on the operator and the argument, DALI raises TypeError, ValueError or RuntimeError for the same mistake, so
errors about arguments derive from all of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from enum import Enum
from typing import Self

from dalify.base.source_line import SourceLine

# Values of the option on_error: handling of samples that cannot be read or decoded.
ON_ERROR = ("raise", "skip", "replace")


class DalifyError(Exception):
    """Base class of the errors of dalify.

    Args:
        message: the problem, one sentence.
        line: the user's line that caused it.
        hint: how to correct the mistake.
        operator: public name, e.g. ``fn.resize``.
        sample: position of the sample in the batch.
        argument: name of the wrong argument. It determines line and operator if one operator replaces several calls.
    """

    def __init__(
        self,
        message: str,
        *,
        line: SourceLine | None = None,
        hint: str = "",
        operator: str | None = None,
        sample: int | None = None,
        argument: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.hint = hint
        self.operator = operator
        self.sample = sample
        self.argument = argument
        self.origin: str | None = None

    @classmethod
    def here(cls, message: str, *, hint: str = "", operator: str | None = None) -> Self:
        """Return an error with the user's line that is being executed; see the class for the arguments."""
        return cls(message, line=SourceLine.capture(), hint=hint, operator=operator)

    def locate(
        self,
        *,
        line: SourceLine | None = None,
        operator: str | None = None,
        sample: int | None = None,
        origin: str | None = None,
    ) -> None:
        """Set attributes that are not set yet; inner functions call it first, because they are more precise."""
        self.line = self.line or line
        if operator is not None and not operator.startswith("fn._"):  # internal operators, not written by users
            self.operator = self.operator or operator
        self.sample = sample if self.sample is None else self.sample
        self.origin = self.origin or origin

    def __str__(self) -> str:
        """Return message, location and hint on separate lines."""
        head = self.message
        if self.operator and self.operator not in head:
            head = f"{self.operator}: {head}"
        parts = [head]
        if self.sample is not None or self.origin:
            where = [] if self.sample is None else [f"sample {self.sample} of the batch"]
            where += [f"from {_on_one_line(self.origin)}"] if self.origin else []
            parts.append("  " + ", ".join(where))
        if self.line is not None:
            parts.append(self.line.quote())
        if self.hint:
            parts.append(f"  {self.hint}")
        return "\n".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with all attributes, because errors are sent from worker processes."""
        return (_rebuild, (type(self), self.message, dict(self.__dict__)))


def _on_one_line(text: str) -> str:
    """Escape characters that are not printable; names of files may contain line breaks."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _rebuild(kind: type[DalifyError], message: str, state: dict[str, object]) -> DalifyError:
    error = kind(message)
    error.__dict__.update(state)
    return error


class UnknownOperatorError(DalifyError, AttributeError, KeyError):
    """An unknown operator."""


class UnknownArgumentError(DalifyError, TypeError, KeyError, RuntimeError, ValueError, AssertionError):
    """An unknown keyword argument of an operator or pipeline."""


class ArgumentTypeError(DalifyError, TypeError, RuntimeError, ValueError):
    """An argument of an unsupported type."""


class ArgumentValueError(DalifyError, ValueError, RuntimeError, TypeError):
    """An argument out of range, or an invalid combination of arguments."""


class ArgumentRangeError(ArgumentValueError, OverflowError):
    """A number that the integer type of an argument cannot represent, such as infinity."""


class MissingKeyError(ArgumentValueError, KeyError):
    """A dictionary that lacks a required key."""


class WrongObjectError(ArgumentTypeError, AttributeError):
    """An object of another class than required."""


class NodeAsNameError(ArgumentTypeError, KeyError):
    """A graph value as the name of a node; DALI interprets it as an unknown argument of the operator."""


class NoOutputsError(ArgumentValueError, NotImplementedError):
    """An argument with which an operator has no outputs; in DALI, the pipeline cannot be built."""


class IteratorArgumentError(ArgumentValueError, AssertionError):
    """An argument of an iterator out of range, or an invalid combination of arguments."""


class OutputMapError(IteratorArgumentError, IndexError, KeyError):
    """Names of outputs that do not match the outputs of the pipeline."""


class NotAPipelineError(ArgumentTypeError, AssertionError, AttributeError, IndexError):
    """An iterator without pipelines, or of objects that are not pipelines."""


class UnsupportedModeError(ArgumentValueError, NotImplementedError):
    """A mode of another library that dalify does not support."""


class ConditionError(DalifyError, TypeError, RuntimeError, ValueError):
    """A graph value that cannot be used as a condition."""


class UnsupportedSyntaxError(DalifyError, TypeError, RuntimeError):
    """A Python construct that graphs do not support."""


class DivergentBranchesError(DalifyError, TypeError, ValueError, RuntimeError):
    """Values of the two branches of a condition that cannot be merged."""


class GraphError(DalifyError, TypeError, RuntimeError, ValueError):
    """A value that cannot be part of a graph, or a graph that cannot be built."""


class CacheError(GraphError):
    """A cache of data that differ between epochs."""


class LayoutError(DalifyError, RuntimeError, ValueError, TypeError):
    """A layout that does not match the operator or the other operand."""


class DTypeError(DalifyError, TypeError, RuntimeError, ValueError):
    """An unsupported or mismatched element type."""


class UnknownTypeError(DTypeError, KeyError):
    """A value that is not an element type of arrays."""


class ShapeError(DalifyError, ValueError, RuntimeError, TypeError):
    """An unsupported or mismatched shape or number of dimensions."""


class TargetShapeError(ShapeError, AssertionError):
    """Data that is copied into a tensor of another shape."""


class TargetTypeError(DTypeError, AssertionError):
    """Data that is copied into a tensor of another element type."""


class IndexingError(DalifyError, IndexError, RuntimeError, ValueError):
    """An index or window outside the data."""


class EllipsisError(IndexingError, NotImplementedError):
    """An index with several ellipses."""


class IntegerRangeError(DalifyError, OverflowError, RuntimeError):
    """An integer that does not fit its element type."""


class DeviceError(DalifyError, RuntimeError, ValueError):
    """A device that does not exist or that the operator does not support."""


class SourceError(DalifyError, RuntimeError, TypeError, ValueError):
    """Invalid external data, or an invalid source."""


class OutputCountError(SourceError, IndexError):
    """A source that returns another number of outputs than declared."""


class BatchSizeError(DalifyError, RuntimeError, ValueError):
    """An invalid batch size."""


class PartialBatchError(BatchSizeError, AssertionError):
    """A batch with fewer samples than an iterator with a size requires."""


class ReaderError(DalifyError, RuntimeError, ValueError, FileNotFoundError):
    """Files or folders that a reader cannot read."""


class DecodeError(DalifyError, RuntimeError, ValueError):
    """Data that are not a decodable image, audio or video."""


class MixedBatchError(DalifyError, TypeError, RuntimeError, ValueError):
    """A sample whose element type or number of dimensions differs from the first sample of the batch."""


class LimitError(DecodeError):
    """A sample that is larger than a limit allows; see ``dalify.limits``."""


class OperatorError(DalifyError, RuntimeError, ValueError):
    """An unexpected exception in an operator, which is the ``__cause__``."""


class OperatorDefinitionError(DalifyError, TypeError, ValueError):
    """An invalid definition of a custom operator; see ``dalify.custom``."""


class ErrorRateError(DalifyError, RuntimeError):
    """More bad samples than ``max_error_rate`` allows."""


class WorkerError(DalifyError, RuntimeError):
    """A worker process that died, or a worker process or thread that cannot be started."""


class PipelineStateError(DalifyError, RuntimeError):
    """A pipeline method called at the wrong time."""


class UnknownInputError(PipelineStateError, KeyError, TypeError):
    """Data for an input that the pipeline does not have."""


class NoDataError(PipelineStateError, IndexError):
    """A run without the data that should have been fed."""


class NoBatchError(PipelineStateError, StopIteration):
    """Outputs of a batch that was not scheduled; DALI raises StopIteration."""


class NoGraphError(PipelineStateError, NotImplementedError):
    """A pipeline without outputs."""


class SerializationError(DalifyError, RuntimeError, TypeError):
    """A graph that cannot be serialized, or an invalid serialized graph."""


class CheckpointError(DalifyError, RuntimeError, ValueError, KeyError, TypeError):
    """A saved state that does not belong to this pipeline."""


class BadSampleWarning(UserWarning):
    """Samples of an epoch that could not be read or decoded."""


class NotAcceleratedError(DalifyError, RuntimeError):
    """A DataLoader that uses torch's loader although acceleration is required."""


class MissingPackageError(DalifyError, ImportError):
    """A required optional package that is not installed."""


@contextmanager
def locating(line: SourceLine | None, operator: str | None = None) -> Generator[None]:
    """Set line and operator of an error of the ``with`` block, unless they are known; see ``DalifyError.locate``."""
    try:
        yield
    except DalifyError as error:
        error.locate(line=line, operator=operator)
        raise


def of_sample(error: Exception, sample: int) -> None:
    """Record the sample of a group that an error belongs to; for kernels.

    Args:
        error: an exception of any class.
        sample: index within the group.
    """
    error.sample = sample  # pyright: ignore[reportAttributeAccessIssue]


def suggestion(name: str, choices: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest choice, or ""."""
    closest = _closest(name, choices)
    return "" if closest is None else f" Did you mean {closest!r}?"


def _closest(name: str, choices: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, list(choices), n=1, cutoff=0.6)), None)


def short_repr(value: object) -> str:
    """Return ``repr(value)`` for an error message, cut to 60 characters."""
    try:
        text = repr(value)
    except Exception:  # of the user's class, or for an integer of thousands of digits
        kind = type(value)
        return "a number of thousands of digits" if kind is int else f"a {kind.__name__}, whose repr() fails"
    return text if len(text) <= 60 else f"{text[:57]}..."


_ACCELERATORS = ("cuda", "mps", "xpu", "hpu", "hip")  # names of torch's devices; dalify calls all of them "gpu"


def check_option(argument: str, value: object, options: Collection[object]) -> None:
    """Raise ArgumentValueError if an argument is not one of its options."""
    try:
        is_known = value in options
    except Exception:  # an array, for example, whose comparison is an array
        is_known = False
    if not is_known:
        raise ArgumentValueError(option_error_text(argument, value, options), argument=argument)


def as_switch(argument: str, value: object) -> bool:
    """Return the truth value of an option.

    Raises:
        ArgumentTypeError: it has none, like an array of several elements.
    """
    try:
        return bool(value)
    except Exception:  # of the user's class
        raise ArgumentTypeError(f"{argument} must be True or False; got {short_repr(value)}.") from None


def option_error_text(argument: str, value: object, options: Iterable[object]) -> str:
    """Return ``argument must be one of a, b, c; got 'd'.`` with a suggestion if one is similar."""
    names = [str(option) for option in options]
    members = {_member(name): name for name in names}
    # A member of an enumeration is not misspelled.
    shown = short_repr(value)
    closest = None if isinstance(value, Enum) else _closest_member(_member(_as_text(value, shown)), members)
    text = f"{argument} must be one of {', '.join(names)}; got {shown}."
    if closest is None:
        return text
    similar = members[closest]  # types.FLOAT or skip; the latter is a string
    return f"{text} Did you mean {similar if '.' in similar else repr(similar)}?"


def _as_text(value: object, default: str) -> str:
    try:
        return str(value)
    except Exception:  # of the user's class
        return default


def _closest_member(name: str, members: Iterable[str]) -> str | None:
    """Return "gpu" for torch's names of accelerators, otherwise the most similar option or None."""
    if name.partition(":")[0] in _ACCELERATORS and "gpu" in members:
        return "gpu"
    return _closest(name, members)


def _member(option: str) -> str:
    """Return the part of an option that is compared: "interp_linear" for "types.INTERP_LINEAR"."""
    return option.rpartition(".")[2].lower()
