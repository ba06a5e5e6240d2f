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
from dalify.base.wording import counted
from dalify.data import DALIDataType
from dalify.graph import DataNode, Edge, Graph, called_as, new_node
from dalify.registry import NO_DEFAULT, Operator

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

    def with_node(self, node: DataNode, layout: str | None = None) -> Value:
        """Return a copy with other data."""
        layout = self.layout if layout is None else layout
        return replace(self, node=node, layout=layout, constant=None, kind="", interleaved=None)

    def mapped(self, function: Callable[[DataNode], DataNode]) -> Value:
        """Apply a function for HWC images to an image or clip of any layout.

        Raises:
            LayoutError: the value is not an image.
        """
        if self.layout in ("HWC", "FHWC"):
            return self.with_node(function(self.node))
        if self.layout not in ("CHW", "FCHW"):
            raise LayoutError(f"an image is required; got data with layout {self.layout!r}.")
        there, back = ([1, 2, 0], [2, 0, 1]) if self.layout == "CHW" else ([0, 2, 3, 1], [0, 3, 1, 2])
        image = self.interleaved if self.interleaved is not None else dali.transpose(self.node, perm=there)
        result = function(image)
        return replace(self.with_node(dali.transpose(result, perm=back)), interleaved=result)


def with_layout(node: DataNode, layout: str) -> DataNode:
    """Return a node with names for its dimensions; for "" the same node."""
    return dali.reinterpret(node, layout=layout) if layout else node


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

    def read(
        self,
        reader: BatchReader,
        count: int,
        dtype: Sequence[DALIDataType] | None = None,
        ndim: Sequence[int] | None = None,
    ) -> list[DataNode]:
        """Return the results of a reader."""
        self.readers.append(reader)

        def source() -> tuple[Any, ...]:
            batch, valid = reader.next_batch()
            return (*batch, np.full(len(batch[0]), valid, np.int32))

        dtypes = None if dtype is None else [*dtype, DALIDataType.INT32]
        dimensions = None if ndim is None else [*ndim, 0]
        *nodes, valid = dali.external_source(source=source, num_outputs=count + 1, dtype=dtypes, ndim=dimensions)
        self.valid = valid if self.valid is None else self.valid
        return nodes

    def values_of(self, outputs: Sequence[Edge]) -> list[Value]:
        """Translate the outputs of the graph and all nodes that they depend on."""
        values: dict[Edge, Value] = {}
        for node in Graph(tuple(outputs)).nodes():
            try:
                arguments = node.operator.grouped(node.arguments)
                context = (self,) if _takes_context(node.operator) else ()
                with SourceLine.captured_as(node.line), called_as(None, node.operator.public_name):
                    result = node.operator.rule(*context, *(values[edge] for edge in node.edges()), **arguments)
            except DalifyError as error:
                node.locate(error)
                raise
            except Exception as error:  # from a user's class, or for an argument of an unexpected type
                error.add_note(f"in {node.operator.public_name} at {node.line}")
                raise
            results = result if isinstance(result, tuple) else (result,)
            values |= {Edge(node, output): value for output, value in enumerate(results)}
        return [values[edge] for edge in outputs]


def _takes_context(made: Operator) -> bool:
    return bool(made.inputs) and made.inputs[0].name == "context"


class Node:
    """A result of a call, which can be passed to other operators or returned by ``definegraph``.

    Args:
        edge: the result in the graph of the recorded calls.
    """

    def __init__(self, edge: Edge) -> None:
        self.edge = edge

    def __iter__(self) -> Iterator[Any]:
        """Raise an error: an operator with one result cannot be unpacked."""
        raise GraphError.here(f"{self!r} is a single result and cannot be unpacked.")

    def __repr__(self) -> str:
        node, output = self.edge
        return f"<{node.operator.name}[{output}] at {node.line}>"


class Operation:
    """An operator with its arguments; calling it with nodes returns a node, or a tuple of nodes.

    Args:
        args: must be empty: all arguments are keyword arguments.
        given: arguments of the operator; ``device`` and ``name`` are accepted by all operators.

    Raises:
        UnknownArgumentError: the operator does not have the argument.
        ArgumentTypeError: a required argument is missing.

    Attributes:
        operator: an operator whose rule is the translation function. It is not in the catalog.
        input_counts: minimum and maximum number of inputs.
        input_names: their names; empty if all have the same role.
    """

    operator: Operator
    input_counts: tuple[int, int]
    input_names: tuple[str, ...]

    def __init__(self, *args: Any, **given: Any) -> None:
        name = type(self).__name__
        parameters = self.operator.parameters
        if args:
            raise ArgumentTypeError.here(
                f"fn.{name} takes keyword arguments only; its inputs are passed when it is called.",
                hint=f"Write self.x = fn.{name}(...) and then self.x(input).",
            )
        for key in given:
            if key not in parameters and key not in _COMMON:
                known = [*parameters, *_COMMON]
                raise UnknownArgumentError.here(
                    f"fn.{name} has no argument {key!r}.{suggestion(key, known)}",
                    hint=f"Available: {', '.join(known)}.",
                )
        missing = [key for key, item in parameters.items() if item.default is NO_DEFAULT and key not in given]
        if missing:
            raise ArgumentTypeError.here(f"fn.{name} needs the argument {missing[0]!r}.")
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
        minimum, maximum = self.input_counts
        if not minimum <= len(inputs) <= maximum:
            wanted = counted(minimum, "input") if minimum == maximum else f"{minimum} to {maximum} inputs"
            names = f" ({', '.join(self.input_names)})" if self.input_names else ""
            raise ArgumentTypeError(f"fn.{name} takes {wanted}{names}; got {len(inputs)}.", line=line)
        for each in inputs:
            if not isinstance(each, Node):
                hint = "Use fn.MediaConst for constants, and [0], [1] … or unpacking for an operator's results."
                raise ArgumentTypeError(
                    f"an input of fn.{name} must be a result of another operator; got {type(each).__name__}.",
                    line=line,
                    hint=hint,
                )
        node = new_node(self.operator, tuple(each.edge for each in inputs), self.arguments, line=line)
        results = tuple(Node(Edge(node, output)) for output in range(node.output_count))
        return results[0] if len(results) == 1 else results


def operator(
    *, outputs: int | str | Callable[[Mapping[str, Any]], int] = 1, inputs: tuple[int, int] | None = None
) -> Callable[[Callable[..., Any]], type[Operation]]:
    """Decorator that makes an operator of a translation function, which gets the `Lowering` if it lists ``context``.

    Args:
        outputs: number of results, or the name of the argument with it, or a function of the arguments.
        inputs: minimum and maximum number of inputs; by default the positional parameters of the function, with those
            with a default value being optional.
    """
    count = (lambda arguments: int(arguments[outputs])) if isinstance(outputs, str) else outputs

    def decorate(function: Callable[..., Any]) -> type[Operation]:
        signature, name = inspect.signature(function), function.__name__
        made = Operator(function, name=name, outputs=count, stands_for=f"mediapipe.fn.{name}")
        named = made.inputs[1:] if _takes_context(made) else made.inputs
        counts = inputs or (sum(not item.is_optional for item in named), len(named))
        keywords: list[inspect.Parameter] = []
        for key, item in signature.parameters.items():
            if key in made.groups:
                fields = inspect.signature(made.groups[key]).parameters.values()
                keywords += [field.replace(kind=item.KEYWORD_ONLY) for field in fields]
            elif item.kind is item.KEYWORD_ONLY:
                keywords.append(item)
        members = {
            "__doc__": made.doc,
            "__module__": function.__module__,
            "__signature__": inspect.Signature(keywords),
            "operator": made,
            "input_counts": counts,
            "input_names": () if inputs else tuple(item.name for item in named),
        }
        return type(name, (Operation,), members)

    return decorate


def seed_of(seed: int | None) -> int:
    """Return the seed for dalify's operators: -1 for the seed of the pipe."""
    return -1 if seed is None else int(seed)


def checked_integers(numbers: Any, count: int, minimum: int, name: str) -> list[int]:
    """Check an argument that consists of integers.

    Args:
        numbers: the value given by the user.
        count: required number of integers.
        minimum: minimum value.
        name: name of the argument.

    Raises:
        ArgumentValueError: the value is invalid.
    """
    try:
        found = [int(number) for number in numbers]
    except (TypeError, ValueError):
        found = []
    if len(found) != count or min(found) < minimum:
        kind = "positive numbers" if minimum else "numbers of at least 0"
        raise ArgumentValueError(f"{name} must be {count} {kind}; got {numbers!r}.")
    return found


def extents(sizes: Any, count: int, name: str) -> list[int]:
    """Return sizes in NumPy's order, which is the reverse of MediaPipe's.

    Raises:
        ArgumentValueError: the number of sizes is wrong, or a size is not positive.
    """
    return checked_integers(sizes, count, 1, name)[::-1]
