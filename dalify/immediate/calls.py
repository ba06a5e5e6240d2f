"""Operators as functions that compute immediately: ``eager.resize(image, size=224)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dalify.api.functions import make_function, to_user_outputs
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BatchSizeError,
    DalifyError,
    DeviceError,
    UnknownOperatorError,
)
from dalify.base.optional import LazyModule
from dalify.base.recent import Recent
from dalify.base.source_line import SourceLine
from dalify.data import Batch
from dalify.data.tensor import check_layout
from dalify.graph import Expression, Node, current_evaluator
from dalify.graph.trace import sort_positional
from dalify.immediate.generator import GENERATOR, STREAM
from dalify.immediate.user_data import Deferred, Kind, Value, is_batch, is_value, to_user_data, value_of
from dalify.registry import Operator, Source

if TYPE_CHECKING:
    from dalify.base.threads import HelperThreads
    from dalify.immediate import prepared
else:
    # Imported at first use: it imports the executor.
    prepared = LazyModule("dalify.immediate.prepared", "computing immediately")

_CACHE_LIMIT = 1024
_LARGEST_KEY_BYTES = 4096
_cache: Recent[prepared.Prepared] = Recent(_CACHE_LIMIT)
_BoundCall = TypeVar("_BoundCall", bound="BoundCall")
_NOT_COMPARABLE: Any = object()  # a constant that cannot be compared with others


@dataclass(slots=True, eq=False)
class BoundCall:
    """A call with its inputs and arguments sorted by kind.

    Attributes:
        operator: the operator.
        data: inputs; None for an omitted optional input.
        values: arguments that are data (arrays, tensors, batches), by name.
        arguments: constant arguments.
        kind: kind of the results.
        count: number of samples.
        drawing: seed and stream of a random operator.
        number: number of the call among random calls.
    """

    operator: Operator
    data: list[Value | None]
    values: dict[str, Value]
    arguments: dict[str, Any]
    kind: Kind
    count: int
    drawing: tuple[int, int]
    number: int

    def node_of_kinds(self) -> Node:
        """Return a node for this call; see ``prepared.node_of_kinds``."""
        kinds = [None if item is None else item.batch for item in self.data]
        named = {name: value.batch for name, value in self.values.items()}
        try:
            return prepared.node_of_kinds(self.operator, kinds, named, self.arguments)
        except DalifyError as error:
            adapt_error(error, self)
            raise


def call_operator(operator: Operator, inputs: Sequence[Any], given: Mapping[str, Any]) -> Any:
    """Call an operator as the active evaluator decides: immediately, or later in lazy mode.

    Returns:
        a sample or a batch; a list of these for several outputs, None without outputs.

    Raises:
        DalifyError: the operator does not accept the data or arguments; with the user's line.
    """
    try:
        return current_evaluator().call(operator, inputs, given, compute_now)
    except DalifyError as error:
        error.locate(line=SourceLine.capture(), operator=operator.public_name)
        raise


def compute_now(operator: Operator, inputs: Sequence[Any], given: Mapping[str, Any]) -> Any:
    """Compute an operator immediately; see ``call_operator``."""
    call = bind_call(operator, inputs, given)
    return to_user_outputs(operator, [to_user_data(result, call.kind) for result in compute_outputs(call)], given)


def compute_outputs(call: BoundCall, threads: HelperThreads | None = None) -> list[Batch]:
    """Return the outputs of a call.

    Args:
        call: the call.
        threads: threads that share its samples; None for the caller's only.

    Raises:
        DalifyError: the operator does not accept the data or arguments.
    """
    batches = [value.repeated(call.count) for value in (*call.data, *call.values.values()) if value is not None]
    try:
        return _prepared(call).compute(batches, call.count, call.number, threads=threads)
    except DalifyError as error:
        adapt_error(error, call)
        raise


def bind_call(
    operator: Operator,
    inputs: Sequence[Any],
    given: Mapping[str, Any],
    read: Callable[[Any], Value] = value_of,
    record: Callable[..., _BoundCall] = BoundCall,
) -> _BoundCall:
    """Sort the inputs and arguments of a call by kind.

    Args:
        operator: the operator.
        inputs: inputs of the user.
        given: keyword arguments of the user.
        read: converts a user's object to a `Value`.
        record: makes the result from the fields of `BoundCall`.

    Raises:
        DalifyError: invalid data or arguments, batches of different sizes.
    """
    inputs, positional = sort_positional(operator, inputs)
    arguments = dict(given)
    data = [None if item is None else read(item) for item in inputs]
    size = arguments.pop("batch_size", None) if "batch_size" not in operator.parameters else None
    layout = arguments.pop("layout", None) if "layout" not in operator.parameters else None
    if layout:
        _set_layout(data, layout)
    values = _values(operator, arguments, read)
    for name in values:
        del arguments[name]
    kind, count = _kind_and_count(data, values, size)
    if arguments.get("device") in ("gpu", "mixed"):
        data = [item and item.moved(arguments["device"]) for item in data]
    drawing, number = _drawing(operator, arguments)
    return record(operator, data, values, arguments | positional, kind, count, drawing, number)


def _prepared(call: BoundCall) -> prepared.Prepared:
    """Return the `Prepared` of a call, from a cache if its key is known."""
    key = cache_key(call, call.drawing)
    return _cache.get_or_make(key, lambda: prepared.Prepared(call.node_of_kinds(), call.drawing))[0]


def adapt_error(error: DalifyError, call: BoundCall) -> None:
    """Omit the sample number of a single sample; add a hint if a list has as many values as there are samples."""
    if call.kind != "batch":
        error.sample = None
        return
    for name, argument in call.arguments.items():
        if not error.hint and isinstance(argument, (list, tuple)) and len(argument) == call.count > 1:
            error.hint = (
                f"A list is one value for all samples. For one value per sample, use {name}=eager.batch([...])."
            )


def _values(operator: Operator, arguments: dict[str, Any], read: Callable[[Any], Value]) -> dict[str, Value]:
    """Return the arguments that are data: arrays, tensors and batches."""
    found: dict[str, Value] = {}
    for name, argument in arguments.items():
        kind = type(argument)
        if kind is int or kind is float or kind is str or kind is bool or argument is None:
            continue
        parameter = operator.parameters.get(name)
        if parameter is None or not parameter.accepts_node:
            if parameter is not None and parameter.element not in (str, object) and is_batch(argument):
                raise ArgumentTypeError(f"{name} must be the same for the whole batch; it cannot be a batch.")
            if isinstance(argument, Deferred):
                arguments[name] = argument.get()
            continue
        if is_value(argument) or isinstance(argument, Expression):
            value = read(argument)
            if value.batch.device == "gpu":
                raise DeviceError(
                    f"the argument {name} must be on the CPU; it is on the GPU.", hint=f"Write {name}=value.cpu()."
                )
            found[name] = value
    return found


def _set_layout(data: Sequence[Value | None], layout: Any) -> None:
    if not isinstance(layout, str):
        raise ArgumentTypeError(f"layout must be a string; got {layout!r}.")
    if not data:
        raise ArgumentTypeError("layout describes inputs, but there is no input.")
    for index, item in enumerate(data):
        if item is None or (index and item.batch.ndim != len(layout)):
            continue
        check_layout(layout, item.batch.ndim or 0)
        if not index or not item.batch.layout:
            item.batch = item.batch.with_layout(layout)


def _kind_and_count(data: Sequence[Value | None], values: Mapping[str, Value], size: Any) -> tuple[Kind, int]:
    """Return the kind of the results and the number of samples."""
    if size is not None and (isinstance(size, bool) or not hasattr(size, "__index__") or int(size) < 1):
        raise ArgumentValueError(f"batch_size must be a positive integer; got {size!r}.")
    counts: dict[str, int] = {} if size is None else {"batch_size": int(size)}
    for index, item in enumerate(data):
        if item is not None and item.kind == "batch":
            counts[f"input {index}"] = len(item.batch)
    for name, item in values.items():
        if item.kind == "batch":
            counts[name] = len(item.batch)
    if counts:
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name}: {count}" for name, count in counts.items())
            raise BatchSizeError(f"the batches have different numbers of samples ({listed}).")
        return "batch", next(iter(counts.values()))
    kinds: list[Kind] = [item.kind for item in (*data, *values.values()) if item is not None and item.is_array]
    return (kinds[0] if kinds else "numpy"), 1


def _drawing(operator: Operator, arguments: dict[str, Any]) -> tuple[tuple[int, int], int]:
    """Return seed and stream, and the number of the call; remove ``seed`` from the arguments.

    With ``seed``, each call draws the same random numbers.
    """
    if not operator.is_random:
        return (0, 0), 0
    seed = arguments.get("seed")
    if seed is not None and hasattr(seed, "__index__") and int(seed) >= 0:
        if "seed" not in operator.parameters:
            del arguments["seed"]
        return (int(seed), 0), 0
    drawn, number = GENERATOR.next_call()
    return (drawn, STREAM), number


def cache_key(call: BoundCall, drawing: tuple[int, int] | None) -> Any:
    """Return the cache key of a prepared call; None if a constant cannot be compared.

    Args:
        call: the call.
        drawing: seed and stream, if they are part of the key.
    """
    parts: list[Any] = [call.operator, drawing]
    for item in call.data:
        parts.append(None if item is None else kind_key(item.batch))
    for name, value in call.values.items():
        parts += (name, kind_key(value.batch))
    for name, argument in call.arguments.items():
        hashable = _hashable(argument)
        if hashable is _NOT_COMPARABLE:
            return None
        parts += (name, hashable)
    return tuple(parts)


def kind_key(batch: Batch) -> tuple[Any, ...]:
    """Return the key of the kind of data of a batch."""
    return (batch.dtype, batch.ndim, batch.layout, batch.device)


def _hashable(value: Any) -> Any:
    kind = type(value)
    if kind is int or kind is bool or kind is str or value is None:
        return (kind, value)
    if kind is float:
        return (kind, value.hex())  # distinguishes 0.0 from -0.0
    if kind is list or kind is tuple:
        items = tuple(_hashable(item) for item in value)
        return _NOT_COMPARABLE if _NOT_COMPARABLE in items else (kind, items)
    if isinstance(value, (Enum, np.dtype, type)):
        return (kind, value)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf" and value.nbytes < _LARGEST_KEY_BYTES:
        return (kind, value.dtype, value.shape, value.tobytes())
    return _NOT_COMPARABLE


def make_eager(operator: Operator, public_name: str) -> Callable[..., Any]:
    """Create the function of an operator, with its signature and documentation.

    Args:
        operator: the operator that the function computes.
        public_name: how users write it.

    Raises:
        UnknownOperatorError: the operator is a data source, which has a state and runs only in pipelines.
    """
    if isinstance(operator, Source):
        raise UnknownOperatorError(
            f"{public_name} cannot compute immediately: it is a data source of a pipeline.",
            hint=f"Use {operator.public_name} in a function decorated with @pipeline_def.",
        )

    def function(*inputs: Any, **arguments: Any) -> Any:
        return call_operator(operator, inputs, arguments)

    return make_function(operator, public_name, function)
