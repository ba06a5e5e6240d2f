"""Calls user functions on the samples of a batch, and checks their results.

The operators for NumPy arrays and for DLPack capsules use it with different conversions of arguments and results.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dalify.base.errors import (
    ArgumentTypeError,
    DTypeError,
    LayoutError,
    NoOutputsError,
    PipelineStateError,
    ShapeError,
    SourceError,
)
from dalify.base.failure_context import failure_context, forget_location
from dalify.base.narrow import is_array, is_list_or_tuple
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.data import Batch, array_dtype, from_numpy
from dalify.data.spec import Spec

Convert = Callable[[Any], Any]


def layout_of(output_layouts: Any, index: int) -> str | None:
    """Return the layout of one output from ``output_layouts``: a string for all outputs, or a list.

    Raises:
        ArgumentTypeError: neither a string nor a list of strings.
    """
    if output_layouts is None or isinstance(output_layouts, str):
        return output_layouts
    is_sequence = is_list_or_tuple(output_layouts) or is_array(output_layouts)
    if not is_sequence or not all(isinstance(item, str) for item in output_layouts):
        raise ArgumentTypeError(
            f"output_layouts must be a string or a list of strings; got {output_layouts!r}.",
            hint="For example output_layouts='HWC'.",
        )
    return output_layouts[index] if index < len(output_layouts) else None


def output_count(arguments: Mapping[str, Any]) -> int:
    """Return the number of outputs of an operator that calls a function of the user.

    Raises:
        NoOutputsError: the number is negative.
    """
    count = arguments["num_outputs"]
    if count < 0:
        raise NoOutputsError(f"num_outputs must not be negative; got {count}.")
    return count


def output_specs(xs: Sequence[Spec], function: object, num_outputs: int, output_layouts: Any) -> tuple[Spec, ...]:
    """Return the specs of the outputs; only layout and device are known before the function is called.

    Raises:
        ArgumentTypeError: the function is not callable.
    """
    if not callable(function):
        raise ArgumentTypeError(f"function must be callable; got {type(function).__name__}.")
    device = xs[0].device if xs else "cpu"
    return tuple(Spec(None, None, layout_of(output_layouts, index), None, device) for index in range(num_outputs))


def calls_user_function(device: str, to_argument: Convert, to_result: Convert) -> Callable[..., tuple[Batch, ...]]:
    """Return the kernel of an operator that calls a function of the user.

    Args:
        device: device of the results.
        to_argument: converts a sample to the argument of the function.
        to_result: converts a result of the function to an array or tensor.
    """

    def kernel(
        *xs: Batch,
        function: Any,
        num_outputs: int,
        batch_processing: bool,
        output_layouts: Any,
        count: int,
        is_discarded: Callable[[], bool],
    ) -> tuple[Batch, ...]:
        columns = _called(function, xs, count, num_outputs, batch_processing, to_argument, is_discarded)
        layouts = [layout_of(output_layouts, index) for index in range(num_outputs)]
        origins = next((batch.origins for batch in xs if batch.origins is not None), None)
        return tuple(
            Batch(None, _convert_samples(column, layout, to_result, function), layout or "", device, origins)
            for column, layout in zip(columns, layouts, strict=True)
        )

    return kernel


def _called(
    function: Callable[..., Any],
    inputs: Sequence[Batch],
    count: int,
    num_outputs: int,
    batch_processing: bool,
    to_argument: Convert,
    is_discarded: Callable[[], bool],
) -> list[list[Any]]:
    """Call a function once per sample, or once with a list of samples per input; return the samples of each output.

    Raises:
        PipelineStateError: nothing needs the batch any more; a slow function could otherwise delay the end of the
            program by the time of a whole batch.
        SourceError: the result is None, or has another number of values or samples than expected.
        Exception: any exception of the function.
    """
    columns: list[list[Any]] = [[] for _ in range(num_outputs)]
    if batch_processing:
        returned = _output_values(
            function(*([to_argument(sample) for sample in batch.samples] for batch in inputs)), num_outputs, function
        )
        for column, items in zip(columns, returned, strict=True):
            column.extend(_checked_list(items, count, function))
    else:
        for index in range(count):
            if is_discarded():
                raise PipelineStateError("the batch was discarded.")
            try:
                returned = _output_values(
                    function(*(to_argument(batch.samples[index]) for batch in inputs)), num_outputs, function
                )
            except Exception as error:
                forget_location(error)
                failure_context(error).sample = index
                raise
            for column, item in zip(columns, returned, strict=True):
                column.append(item)
    return columns


def _output_values(returned: Any, num_outputs: int, function: Callable[..., Any]) -> tuple[Any, ...]:
    if num_outputs == 0:
        return ()
    if returned is None:
        raise _function_error(function, "returned None.", "Return the result, or set num_outputs=0 if there is none.")
    values = returned if isinstance(returned, tuple) else (returned,)
    if len(values) != num_outputs:
        kind = f"a tuple of {len(values)}" if isinstance(returned, tuple) else f"a single {type(returned).__name__}"
        wanted = "one value" if num_outputs == 1 else f"a tuple of {num_outputs}"
        raise _function_error(
            function,
            f"returned {kind}, but {wanted} is expected.",
            f"Return {wanted}, or set num_outputs={len(values)}.",
        )
    return values


def _checked_list(items: Any, count: int, function: Callable[..., Any]) -> Any:
    try:
        found = len(items)
    except TypeError:
        found = None
    if found != count:
        what = f"a {type(items).__name__}" if found is None else counted(found, "sample")
        raise _function_error(
            function,
            f"returned {what} for a batch of {count}.",
            "With batch_processing=True, return one list of samples per output.",
        )
    return items


def _convert_samples(
    samples: list[Any], layout: str | None, to_result: Convert, function: Callable[..., Any]
) -> list[Any]:
    """Convert the samples of one output; they must have the same dtype and number of dimensions."""
    arrays: list[Any] = []
    for index, sample in enumerate(samples):
        try:
            array = to_result(sample)
            array_dtype(array)
        except (DTypeError, TypeError, ValueError, BufferError) as error:
            raise DTypeError(
                f"the function {_name_of(function)} returned {_describe(sample)}, which is not an array of a supported "
                "dtype.",
                hint="Return a NumPy array (or a tensor) of integers, floats or bool.",
                sample=index,
            ) from error
        if arrays and array.dtype != arrays[0].dtype:
            raise _mixed_error(DTypeError, function, index, "dtype", arrays[0].dtype, array.dtype)
        if arrays and array.ndim != arrays[0].ndim:
            raise _mixed_error(ShapeError, function, index, "number of dimensions", arrays[0].ndim, array.ndim)
        arrays.append(array)
    if layout and arrays and arrays[0].ndim != len(layout):
        raise LayoutError(
            f"output_layouts is {layout!r}, but the function {_name_of(function)} returned "
            f"{counted(arrays[0].ndim, 'dimension')}.",
            hint="Specify one letter for each dimension of a sample.",
        )
    return arrays


def _mixed_error(
    kind: type[DTypeError | ShapeError], function: Callable[..., Any], index: int, what: str, first: Any, other: Any
) -> Exception:
    return kind(
        f"the function {_name_of(function)} returned samples of different {what}: "
        f"{first} for sample 0, {other} for sample {index}.",
        sample=index,
    )


def _function_error(function: Callable[..., Any], problem: str, hint: str) -> SourceError:
    return SourceError(f"the function {_name_of(function)} {problem}", hint=hint)


def _name_of(function: Callable[..., Any]) -> str:
    """Return the function's name and location."""
    inner = inspect.unwrap(function) if callable(function) else function
    code = getattr(inner, "__code__", None)
    name = getattr(inner, "__qualname__", type(inner).__name__).rpartition("<locals>.")[2]
    if code is None:
        return f"{name}()"
    return f"{name}() ({Path(code.co_filename).name}:{code.co_firstlineno})"


def _describe(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    return f"a {type(value).__name__}" + (f" of type {dtype}" if dtype is not None else "")


def as_array(value: Any) -> np.ndarray[Any, Any]:
    """Convert the result of a CPU function to a NumPy array, without a copy if possible."""
    if hasattr(value, "detach"):  # a torch tensor, possibly with requires_grad
        value = value.detach().cpu()
    array = np.asarray(value)
    from_numpy(array.dtype)
    return array


def as_tensor(value: Any) -> Any:
    """Convert the result of a GPU function to a torch tensor, without a copy if possible."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    return torch.from_dlpack(value) if hasattr(value, "__dlpack__") else torch.as_tensor(value)
