"""Operators of MediaPipe, and the nodes that record their calls.

An operator of MediaPipe is one function that composes dalify's operators; ``@operator`` turns it into the class that
programs use. Calls need no current pipeline.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from dalify import fn as dali
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DalifyError,
    GraphError,
    LayoutError,
    UnknownArgumentError,
    suggestion,
)
from dalify.base.source_line import SourceLine
from dalify.data import DALIDataType
from dalify.graph import DataNode

__all__ = [
    "BatchReader",
    "Call",
    "Lowering",
    "Node",
    "Operation",
    "Value",
    "extents",
    "operator",
    "seed_of",
    "whole_numbers",
]

_COMMON = ("device", "name")


class BatchReader(Protocol):
    """A reader that returns the batches of an epoch."""

    def start_epoch(self) -> None:
        """Start the next epoch."""
        ...

    def next_batch(self) -> tuple[tuple[Any, ...], int]:
        """Return the next batch, one entry for each output, and the number of its samples that are not padding.

        Raises:
            StopIteration: the epoch has ended.
        """
        ...

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        ...


@dataclass(frozen=True)
class Value:
    """A result during the translation of the graph to dalify's.

    Attributes:
        node: dalify's node, with samples in NumPy's order of dimensions.
        layout: letters of a sample's dimensions; "" if they have no names.
        batched: whether there is one value per sample; otherwise all samples of the batch have the same value.
        constant: its values if they are known.
        kind: "path", "file"; "frames" and "first" of a clip of a video; or "" for data.
        interleaved: the same image as HWC, if `node` is CHW. The unused one is pruned.
        is_bfloat16: whether to round to bfloat16 at the output of the pipeline.
    """

    node: DataNode
    layout: str = ""
    batched: bool = True
    constant: np.ndarray[Any, Any] | None = None
    kind: str = ""
    interleaved: DataNode | None = None
    is_bfloat16: bool = False

    def having(self, node: DataNode, layout: str | None = None) -> Value:
        """Return a copy with other data."""
        layout = self.layout if layout is None else layout
        return replace(self, node=node, layout=layout, constant=None, kind="", interleaved=None)

    def mapped(self, function: Callable[[DataNode], DataNode]) -> Value:
        """Apply a function for HWC images to an image or clip of any layout.

        Raises:
            LayoutError: the value is not an image.
        """
        if self.layout in ("HWC", "FHWC"):
            return self.having(function(self.node))
        if self.layout not in ("CHW", "FCHW"):
            raise LayoutError(f"an image is required; got data with layout {self.layout!r}.")
        there, back = ([1, 2, 0], [2, 0, 1]) if self.layout == "CHW" else ([0, 2, 3, 1], [0, 3, 1, 2])
        image = self.interleaved if self.interleaved is not None else dali.transpose(self.node, perm=there)
        result = function(image)
        return replace(self.having(dali.transpose(result, perm=back)), interleaved=result)


@dataclass
class Lowering:
    """The translation of a graph.

    Attributes:
        batch_size: samples per batch.
        is_accelerated: whether decoders may use the accelerator.
        seed: seed of the pipe, for readers without their own seed; None if the pipe has none.
        readers: readers found so far.
        valid: number of samples of a batch that are not padding, from the first reader.
    """

    batch_size: int
    is_accelerated: bool = False
    seed: int | None = None
    readers: list[BatchReader] = field(default_factory=list)
    valid: DataNode | None = None
    results: dict[int, tuple[Value, ...]] = field(default_factory=dict)

    def read(
        self,
        reader: BatchReader,
        count: int,
        dtype: Sequence[DALIDataType] | None = None,
        ndim: Sequence[int] | None = None,
    ) -> list[DataNode]:
        """Return the results of a reader.

        Args:
            reader: returns the batches.
            count: number of results.
            dtype: their dtypes, if known.
            ndim: their numbers of dimensions, if known.
        """
        self.readers.append(reader)

        def source() -> tuple[Any, ...]:
            batch, valid = reader.next_batch()
            return (*batch, np.full(len(batch[0]), valid, np.int32))

        dtypes = None if dtype is None else [*dtype, DALIDataType.INT32]
        dimensions = None if ndim is None else [*ndim, 0]
        *nodes, valid = dali.external_source(source=source, num_outputs=count + 1, dtype=dtypes, ndim=dimensions)
        self.valid = valid if self.valid is None else self.valid
        return nodes

    def value_of(self, node: Node) -> Value:
        """Translate a node and all nodes that it depends on."""
        call = node.call
        if id(call) not in self.results:
            inputs = [self.value_of(each) for each in call.inputs]
            try:
                with SourceLine.standing_in(call.line):
                    result = type(call.operation).lower(self, *inputs, **call.operation.arguments)
            except DalifyError as error:
                error.locate(line=call.line, operator=f"mediapipe.fn.{type(call.operation).__name__}")
                raise
            except Exception as error:  # from a user's class, or for an argument of an unexpected type
                error.add_note(f"in mediapipe.fn.{type(call.operation).__name__} at {call.line}")
                raise
            self.results[id(call)] = result if isinstance(result, tuple) else (result,)
        return self.results[id(call)][node.index]


@dataclass(frozen=True, eq=False)
class Call:
    """One call of an operator.

    Attributes:
        operation: the operator with its arguments.
        inputs: input nodes.
        line: line of the user's code.
    """

    operation: Operation
    inputs: tuple[Node, ...]
    line: SourceLine | None


class Node:
    """A result of a call, which can be passed to other operators or returned by ``definegraph``.

    Args:
        call: the call that produces it.
        index: index of the result.
    """

    def __init__(self, call: Call, index: int = 0) -> None:
        self.call = call
        self.index = index

    def __iter__(self) -> Iterator[Any]:
        """Raise an error: an operator with one result cannot be unpacked."""
        raise GraphError(f"{self!r} is a single result and cannot be unpacked.", line=SourceLine.capture())

    def __repr__(self) -> str:
        """Return the operator and the line."""
        return f"<{type(self.call.operation).__name__}[{self.index}] at {self.call.line}>"


class Operation:
    """An operator with its arguments; calling it with nodes returns a node, or a tuple of nodes.

    Args:
        args: must be empty: all arguments are keyword arguments.
        given: arguments of the operator; ``device`` and ``name`` are accepted by all operators.

    Raises:
        UnknownArgumentError: the operator does not have the argument.
        ArgumentTypeError: a required argument is missing.
    """

    lower: Callable[..., Any]
    parameters: Mapping[str, inspect.Parameter]
    input_counts: tuple[int, int]
    output_count: int | Callable[[Mapping[str, Any]], int]

    def __init__(self, *args: Any, **given: Any) -> None:
        name = type(self).__name__
        line = SourceLine.capture()
        if args:
            raise ArgumentTypeError(
                f"fn.{name} takes keyword arguments only; its inputs are passed when it is called.",
                line=line,
                hint=f"Write self.x = fn.{name}(...) and then self.x(input).",
            )
        for key in given:
            if key not in self.parameters and key not in _COMMON:
                known = [*self.parameters, *_COMMON]
                raise UnknownArgumentError(
                    f"fn.{name} has no argument {key!r}.{suggestion(key, known)}",
                    line=line,
                    hint=f"Available: {', '.join(known)}.",
                )
        missing = [key for key, item in self.parameters.items() if item.default is item.empty and key not in given]
        if missing:
            raise ArgumentTypeError(f"fn.{name} needs the argument {missing[0]!r}.", line=line)
        self.arguments = {key: value for key, value in given.items() if key not in _COMMON}
        self.device = given.get("device")
        self.name = given.get("name")

    def __call__(self, *inputs: Node) -> Any:
        """Record a call.

        Raises:
            ArgumentTypeError: an input is not a node, or the number of inputs is wrong.
        """
        name = type(self).__name__
        line = SourceLine.capture()
        inputs = tuple(each for each in inputs if each is not None)
        least, most = self.input_counts
        if not least <= len(inputs) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise ArgumentTypeError(f"fn.{name} takes {wanted} inputs; got {len(inputs)}.", line=line)
        for each in inputs:
            if not isinstance(each, Node):
                hint = "Use fn.MediaConst for constants, and [0], [1] … or unpacking for an operator's results."
                raise ArgumentTypeError(
                    f"an input of fn.{name} must be a result of another operator; got {type(each).__name__}.",
                    line=line,
                    hint=hint,
                )
        call = Call(self, inputs, line)
        defaults = {key: item.default for key, item in self.parameters.items()}
        count = self.output_count
        number = count if isinstance(count, int) else count({**defaults, **self.arguments})
        if number == 1:
            return Node(call)
        return tuple(Node(call, index) for index in range(number))


def operator(
    *, outputs: int | str | Callable[[Mapping[str, Any]], int] = 1, inputs: tuple[int, int] | None = None
) -> Callable[[Callable[..., Any]], type[Operation]]:
    """Decorator that makes an operator of a translation function.

    Args:
        outputs: number of results, or the name of the argument with it, or a function of the arguments.
        inputs: minimum and maximum number of inputs; by default the positional parameters of the function, with those
            with a default value being optional.
    """
    count = (lambda arguments: int(arguments[outputs])) if isinstance(outputs, str) else outputs

    def decorate(function: Callable[..., Any]) -> type[Operation]:
        signature = inspect.signature(function)
        places = [item for item in signature.parameters.values() if item.kind is item.POSITIONAL_ONLY][1:]
        names = {key: item for key, item in signature.parameters.items() if item.kind is item.KEYWORD_ONLY}
        counts = inputs or (sum(item.default is item.empty for item in places), len(places))
        members = {
            "__doc__": function.__doc__,
            "__module__": function.__module__,
            "__signature__": inspect.Signature(list(names.values())),
            "lower": staticmethod(function),
            "parameters": names,
            "input_counts": counts,
            "output_count": count if isinstance(count, int) else staticmethod(count),
        }
        return type(function.__name__, (Operation,), members)

    return decorate


def seed_of(seed: int | None) -> int:
    """Return the seed for dalify's operators: -1 for the seed of the pipe."""
    return -1 if seed is None else int(seed)


def whole_numbers(numbers: Any, count: int, least: int, what: str) -> list[int]:
    """Check an argument that consists of integers.

    Args:
        numbers: the value given by the user.
        count: required number of integers.
        least: minimum value.
        what: name of the argument.

    Raises:
        ArgumentValueError: the value is invalid.
    """
    try:
        found = [int(number) for number in numbers]
    except (TypeError, ValueError):
        found = []
    if len(found) != count or min(found) < least:
        kind = "positive numbers" if least else "numbers of at least 0"
        raise ArgumentValueError(f"{what} must be {count} {kind}; got {numbers!r}.")
    return found


def extents(sizes: Any, count: int, what: str) -> list[int]:
    """Return sizes in NumPy's order, which is the reverse of MediaPipe's.

    Raises:
        ArgumentValueError: the number of sizes is wrong, or a size is not positive.
    """
    return whole_numbers(sizes, count, 1, what)[::-1]
