"""Call a Python function on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.registry import Spec, operator
from dalify.sources.user_function import as_array, as_tensor, call_user_function, layout_of, writable


def _count(arguments: Mapping[str, Any]) -> int:
    count = arguments["num_outputs"]
    if count < 0:
        raise ArgumentValueError(f"num_outputs must not be negative; got {count}.")
    return count


@operator(
    outputs=_count,
    batchwise=True,
    serial=True,
    side_effect=True,
    user_code=True,
    constructor=("function", "num_outputs", "device", "batch_processing"),
)
def python_function(
    *xs: Spec,
    function: object,
    num_outputs: int = 1,
    batch_processing: bool = False,
    output_layouts: object = None,
    deterministic: bool = False,
    parallel: bool = False,
) -> tuple[Spec, ...]:
    """Call a Python function on numpy arrays, in this process, for one batch after the other.

    The function is called as it is written: conditions in it are plain Python.

    Args:
        *xs: any inputs; the function gets one argument for each.
        function: gets the arrays of one sample and returns an array, or a tuple of ``num_outputs`` arrays, of any
            numeric type or bool. All samples of an output need one type and number of dimensions. On the GPU it gets
            torch tensors.
        num_outputs: number of outputs; with 0 it is called for what it does.
        batch_processing: call the function once per batch; it then gets, and returns, one list of arrays for each
            input and output.
        deterministic: the function depends on its inputs alone and does nothing else, so ``fn.cache`` may stand behind
            it. What it closes over, its defaults, and the functions and constants that it names count for the cache;
            further changes do not. Without effect with ``batch_processing``.
        output_layouts: layout of the outputs: one text for all, or a list with one for each; none where not given.
        parallel: the function depends on its inputs alone: it may be called for several batches at once, in any order,
            and in the worker processes of a pipeline made with ``processes=N``. Python's, NumPy's and torch's random
            numbers are seeded there before each batch, with the pipeline's seed and the batch's number.

    Returns:
        ``num_outputs`` outputs.

    Raises:
        SourceError: the function returned None or another number of values.
        DTypeError: it returned something that is no array of numbers, or arrays of different types.
        ShapeError: it returned arrays with different numbers of dimensions.
        LayoutError: a layout for another number of dimensions.

    Example:
        >>> rotated = fn.python_function(images, function=lambda image: np.rot90(image))
    """
    del batch_processing, deterministic, parallel
    if not isinstance(function, Callable):
        raise ArgumentTypeError(f"function must be something that can be called; got {type(function).__name__}.")
    device = xs[0].device if xs else "cpu"
    return tuple(Spec(None, None, layout_of(output_layouts, index), None, device) for index in range(num_outputs))


@python_function.cpu
def _(*xs, function, num_outputs, batch_processing, output_layouts, count):
    return call_user_function(
        function, xs, count, num_outputs, output_layouts, "cpu", whole=batch_processing, given=writable, taken=as_array
    )


@python_function.gpu
def _(*xs, function, num_outputs, batch_processing, output_layouts, count):
    return call_user_function(
        function,
        xs,
        count,
        num_outputs,
        output_layouts,
        "gpu",
        whole=batch_processing,
        given=lambda x: x,
        taken=as_tensor,
    )
