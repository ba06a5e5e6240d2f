"""Call a Python function on NumPy arrays."""

from __future__ import annotations

from dalify.registry import Spec, operator
from dalify.sources.convert import writable
from dalify.sources.user_function import (
    as_array,
    as_tensor,
    calls_user_function,
    output_count,
    output_specs,
)


@operator(
    outputs=output_count,
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
    """Call a Python function on NumPy arrays, in this process, one batch at a time.

    The function is not rewritten: conditions in it are plain Python.

    Args:
        *xs: any inputs; the function receives one argument for each.
        function: receives the arrays of one sample and returns an array, or a tuple of ``num_outputs`` arrays, of any
            numeric type or bool. All samples of an output must have the same type and number of dimensions. On the
            GPU it receives torch tensors.
        num_outputs: number of outputs; with 0 it is called for its side effects.
        batch_processing: call the function once per batch; it then receives and returns one list of arrays for each
            input and output.
        deterministic: the function depends only on its inputs and has no side effects, so that its results can be
            cached by ``fn.cache``. The cache key includes its closure, its defaults, and the functions and constants
            that it names, but no indirect dependencies. Ignored with ``batch_processing``.
        output_layouts: layout of the outputs: one string for all, or a list with one for each; by default none.
        parallel: the function depends only on its inputs: it may be called for several batches concurrently, in any
            order, and in the worker processes of a pipeline with ``processes=N``. There, the random generators of
            Python, NumPy and torch are seeded before each batch with the seed of the pipeline and the batch number.

    Returns:
        ``num_outputs`` outputs.

    Raises:
        SourceError: the function returned None or a wrong number of values.
        DTypeError: the function returned an object that is not a numeric array, or arrays of different types.
        ShapeError: the function returned arrays with different numbers of dimensions.
        LayoutError: a layout does not match the number of dimensions.

    Example:
        >>> rotated = fn.python_function(images, function=lambda image: np.rot90(image))
    """
    del batch_processing, deterministic, parallel
    return output_specs(xs, function, num_outputs, output_layouts)


python_function.cpu_batch(calls_user_function("cpu", writable, as_array))
python_function.gpu_batch(calls_user_function("gpu", lambda x: x, as_tensor))
