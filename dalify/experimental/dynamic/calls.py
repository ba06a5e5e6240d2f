"""Calls of operators in dynamic mode, computed immediately or when a result is accessed.

This module determines which arguments are data, whether results are tensors or batches, and the random number
generator.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalify.api import make_function, to_user_outputs
from dalify.base.errors import ArgumentTypeError, BatchSizeError, DalifyError, ShapeError, UnknownArgumentError
from dalify.base.optional import torch
from dalify.base.source_line import SourceLine
from dalify.data import Batch
from dalify.experimental.dynamic.context import EvalContext, EvalMode
from dalify.experimental.dynamic.devices import device
from dalify.experimental.dynamic.dtypes import DType, type_id
from dalify.experimental.dynamic.rng import RNG, get_default_rng
from dalify.experimental.dynamic.tensor_or_batch import TensorOrBatch
from dalify.graph import constant_array
from dalify.immediate import Value, bind_call, compute_outputs, is_batch, value_of
from dalify.registry import Operator, catalog


@dataclass(eq=False, repr=False, slots=True, weakref_slot=True)
class Call:
    """A deferred call.

    Args:
        operator: the operator to compute.
        inputs: inputs of the call.
        arguments: arguments, converted by ``_converted_arguments``.
        position: position of the call in the random numbers of its generator; None for operators without any.
        line: the user's line.
    """

    operator: Operator
    inputs: Sequence[Any]
    arguments: Mapping[str, Any]
    position: int | None
    line: SourceLine | None
    _outputs: list[Batch] | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def result(self, output: int) -> Batch:
        """Return an output; the first access computes all outputs.

        Raises:
            DalifyError: the operator does not support its data; with the line of the call.
        """
        # Without recursion: a loop may have deferred thousands of calls that depend on each other.
        stack = [self]
        while stack:
            before = stack[-1].dependencies()
            if before:
                stack += before
            else:
                stack.pop().compute()
        assert self._outputs is not None, "dalify bug: a call without results"
        return self._outputs[output]

    def dependencies(self) -> list[Call]:
        """Return the calls to compute before this one."""
        if self._outputs is not None:
            return []
        sources = (item.source for item in _tensors_and_batches((*self.inputs, *self.arguments.values())))
        return [call for call in sources if isinstance(call, Call) and call._outputs is None]

    def compute(self) -> None:
        """Compute the outputs unless they exist.

        Raises:
            DalifyError: the operator does not support its data; with the line of the call.
        """
        with self._lock:
            if self._outputs is None:
                try:
                    with SourceLine.captured_as(self.line):
                        self._outputs, _ = _computed(self.operator, self.inputs, self.arguments, self.position)
                except DalifyError as error:
                    locate_error(error, self.line, self.operator.public_name)
                    raise
                except Exception as error:
                    error.add_note(f"the call is at {self.line}")
                    raise
                self.inputs, self.arguments = (), {}


def call_operator(operator: Operator, inputs: Sequence[Any], given: Mapping[str, Any]) -> Any:
    """Compute an operator, or defer it, depending on the mode.

    Args:
        operator: the operator to compute.
        inputs: tensors, batches, or values that can be converted to a tensor.
        given: keyword arguments of the user.

    Returns:
        a Tensor, or a Batch if an input or an argument is one or with ``batch_size``; a tuple of several.

    Raises:
        DalifyError: the operator does not support data or arguments; with the user's line.
    """
    try:
        arguments, position = _converted_arguments(operator, inputs, given)
        mode = EvalMode.current()
        if mode is EvalMode.deferred and _is_deferrable(operator, inputs, arguments):
            results = _defer(operator, inputs, arguments, position)
        else:
            outputs, is_batch_result = _computed(operator, inputs, arguments, position)
            results = [TensorOrBatch.class_of(is_batch_result).from_data(output) for output in outputs]
            if mode is EvalMode.sync_full and torch.accelerator.is_available():
                torch.accelerator.synchronize()
    except DalifyError as error:
        locate_error(error, SourceLine.capture(), operator.public_name)
        raise
    result = to_user_outputs(operator, results, given)
    return tuple(result) if isinstance(result, list) else result


def locate_error(error: DalifyError, line: SourceLine | None, operator: str | None = None) -> None:
    """Add to an error the line of the call, and adapt its hint to dynamic mode.

    Args:
        error: an error whose hint may mention ``dalify.eager``.
        line: the user's line.
        operator: public name.
    """
    error.locate(line=line, operator=operator)
    error.hint = error.hint.replace("eager.batch(", "ndd.batch(").replace("dalify.eager", "dynamic mode")


def apply(name: str, *inputs: Any, **arguments: Any) -> Any:
    """Call an operator by its name."""
    return call_operator(catalog.find(name), inputs, arguments)


def _converted_arguments(
    operator: Operator, inputs: Sequence[Any], given: Mapping[str, Any]
) -> tuple[dict[str, Any], int | None]:
    """Return the arguments with types and devices of dalify, and the position in the random numbers."""
    arguments: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, DType):
            value = type_id(value)
        elif name == "device":
            value = _device(operator, inputs, value)
        elif name == "batch_size" and "batch_size" not in operator.parameters and _has_batch(inputs):
            continue
        arguments[name] = value
    if not operator.is_random:
        return arguments, None
    if "seed" in arguments and "seed" not in operator.parameters:
        raise UnknownArgumentError(
            "the argument seed does not exist in dynamic mode.", hint="Use a generator: rng=ndd.random.RNG(seed)."
        )
    rng = arguments.pop("rng") if "rng" in arguments else get_default_rng()
    if not isinstance(rng, RNG):
        raise ArgumentTypeError(f"rng must be a generator; got {rng!r}.", hint="Use rng=ndd.random.RNG(seed).")
    arguments["seed"], position = rng.next_call()
    return arguments, position


def _device(operator: Operator, inputs: Sequence[Any], value: Any) -> str:
    target = device(value)
    assert target is not None, "dalify bug: no device"
    takes_host_data = not any(isinstance(item, TensorOrBatch) and item.batch.device == "gpu" for item in inputs)
    if target.device_type == "gpu" and operator.takes_mixed and takes_host_data:
        return "mixed"
    return target.device_type


def _has_batch(values: Iterable[Any]) -> bool:
    return any(isinstance(value, TensorOrBatch) and value.is_batch for value in values)


def _tensors_and_batches(items: Iterable[Any]) -> Iterator[TensorOrBatch]:
    """Yield tensors and batches, also those in lists."""
    for item in items:
        if isinstance(item, TensorOrBatch):
            yield item
        elif isinstance(item, (list, tuple)):
            yield from _tensors_and_batches(item)


def _is_deferrable(operator: Operator, inputs: Sequence[Any], arguments: Mapping[str, Any]) -> bool:
    """Return whether a call can be computed later: its data cannot change, and it has no side effects."""
    if operator.is_serial or operator.has_side_effect:
        return False
    given = (*inputs, *arguments.values())
    # A list is copied by the call; lists inside it are not.
    return all(_is_immutable(tuple(item) if isinstance(item, list) else item) for item in given)


def _is_immutable(item: Any) -> bool:
    if isinstance(item, TensorOrBatch):
        return not item.is_exposed
    if isinstance(item, tuple):
        return all(map(_is_immutable, item))
    is_data = isinstance(item, list) or hasattr(item, "__array__") or hasattr(item, "__dlpack__")
    return not is_data or isinstance(item, np.generic)


def _defer(
    operator: Operator, inputs: Sequence[Any], arguments: dict[str, Any], position: int | None
) -> list[TensorOrBatch]:
    """Return results that are computed when they are accessed."""
    operator.check_names(arguments, ("batch_size", "layout"))
    arguments = {name: list(value) if isinstance(value, list) else value for name, value in arguments.items()}
    inputs = [list(item) if isinstance(item, list) else item for item in inputs]
    is_batch_result = "batch_size" in arguments and "batch_size" not in operator.parameters
    is_batch_result = is_batch_result or _has_batch([*inputs, *arguments.values()])
    count = operator.output_count({**arguments, "input_count": sum(item is not None for item in inputs)})
    call = Call(operator, inputs, arguments, position, SourceLine.capture())
    EvalContext.current().pending.add(call)
    return [TensorOrBatch.class_of(is_batch_result).from_call(call, output) for output in range(count)]


def _computed(
    operator: Operator, inputs: Sequence[Any], arguments: Mapping[str, Any], position: int | None
) -> tuple[list[Batch], bool]:
    """Return the outputs of a call, and whether they are batches."""
    call = bind_call(operator, inputs, arguments, to_value)
    if not call.count:
        raise BatchSizeError("the batch is empty.", hint="Operators require at least one sample.")
    if position is not None:
        call.number = position
    context = EvalContext.current()
    chosen = context.cuda_stream
    threads = context.thread_pool if call.count > 1 else None
    with nullcontext() if chosen is None else torch.cuda.stream(chosen.torch_stream):
        return compute_outputs(call, threads), call.kind == "batch"


def to_value(item: Any) -> Value:
    """Return data for an input of the user; a list is one tensor.

    Raises:
        ArgumentTypeError: the value is not data.
        ShapeError: nested lists of different lengths.
    """
    if isinstance(item, TensorOrBatch):
        return Value(item.batch, item.kind)
    if isinstance(item, (list, tuple)) and (is_batch(item) or any(isinstance(part, TensorOrBatch) for part in item)):
        parts = [np.asarray(part) for part in item]
        if len({part.shape for part in parts}) > 1:
            raise ShapeError(
                "the arrays have different shapes and cannot form one tensor.",
                hint="Use a batch: ndd.as_batch([...]).",
            )
        return Value(Batch(constant_array(parts)[None]), "tensor")
    return value_of(item)


def make_dynamic(operator: Operator, public_name: str) -> Callable[..., Any]:
    """Create the function for an operator, with its signature and documentation."""

    def function(*inputs: Any, **arguments: Any) -> Any:
        return call_operator(operator, inputs, arguments)

    made: Any = make_function(operator, public_name, function)
    kinds = inspect.Parameter
    own = ["batch_size", *(("rng",) if operator.is_random else ())]
    known = made.__signature__.parameters
    more = [kinds(name, kinds.KEYWORD_ONLY, default=None) for name in own if name not in known]
    kept = [item for item in known.values() if item.name != "seed" or "seed" in operator.parameters]
    made.__signature__ = inspect.Signature([*kept, *more])
    return made
