"""Call a Numba-compiled function per sample, on all threads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from dalify.base.wording import counted
from dalify.data import DALIDataType, Samples
from dalify.registry import Spec, operator


def _count(arguments: Mapping[str, Any]) -> int:
    return len(arguments["out_types"])


@operator(outputs=_count, user_code=True)
def numba_function(
    *xs: Spec,
    run_fn: object,
    out_types: list[DALIDataType],
    in_types: list[DALIDataType],
    outs_ndim: list[int],
    ins_ndim: list[int],
    setup_fn: object = None,
    blocks: object = None,
    threads_per_block: object = None,
) -> tuple[Spec, ...]:
    """Call a function that Numba compiles on each sample. It runs in parallel on all threads, without the GIL.

    Args:
        *xs: any inputs on the CPU.
        run_fn: ``run_fn(out0, ..., in0, ...)`` fills the outputs of one sample; it is compiled on the first call.
        out_types: element type of each output.
        in_types: element type of each input.
        outs_ndim: number of dimensions of each output.
        ins_ndim: number of dimensions of each input.
        setup_fn: ``setup_fn(outs, ins)`` sets the shapes of the outputs: ``outs[i][sample]`` and ``ins[i][sample]``
            are int64 arrays of extents. Without it, each output has the shape of the input with the same index.
        blocks: for GPU functions; accepted but ignored.
        threads_per_block: for GPU functions; accepted but ignored.

    Returns:
        one output per entry of ``out_types``, without a layout.

    Raises:
        ArgumentTypeError: ``run_fn`` is not a function.
        ArgumentValueError: lists of different lengths, or without ``setup_fn`` different numbers of outputs and inputs.
        DTypeError: the type of an input differs from ``in_types``.
        ShapeError: the number of dimensions of an input differs from ``ins_ndim``, or an output shape is invalid.

    Example:
        >>> def invert(out, image):
        ...     out[:] = 255 - image
        >>> negative = fn.experimental.numba_function(
        ...     images, run_fn=invert, out_types=[types.UINT8], in_types=[types.UINT8], outs_ndim=[3], ins_ndim=[3]
        ... )
    """
    del blocks, threads_per_block
    return declared_specs(xs, run_fn, out_types, in_types, outs_ndim, ins_ndim, setup_fn)


def declared_specs(
    xs: Sequence[Spec],
    run_fn: Any,
    out_types: Sequence[DALIDataType],
    in_types: Sequence[DALIDataType],
    outs_ndim: Sequence[int],
    ins_ndim: Sequence[int],
    setup_fn: Any,
) -> tuple[Spec, ...]:
    """Check the declarations against each other and the inputs, and return the specs of the outputs."""
    if not isinstance(run_fn, Callable):
        raise ArgumentTypeError(f"run_fn must be a function; got {type(run_fn).__name__}.")
    for one, other, first, second in (
        ("out_types", "outs_ndim", out_types, outs_ndim),
        ("in_types", "ins_ndim", in_types, ins_ndim),
        ("in_types", "the inputs", in_types, xs),
    ):
        if len(first) != len(second):
            raise ArgumentValueError(f"{one} and {other} must have equal lengths; got {len(first)} and {len(second)}.")
    if setup_fn is None and len(out_types) != len(in_types):
        raise ArgumentValueError(
            "without setup_fn, the number of outputs must equal the number of inputs; got "
            f"{len(out_types)} and {len(in_types)}.",
            hint="Pass setup_fn(outs, ins), which sets the shapes of the outputs.",
        )
    for index, (spec, dtype, ndim) in enumerate(zip(xs, in_types, ins_ndim, strict=True)):
        if spec.dtype is not None and spec.dtype != dtype:
            raise DTypeError(f"input {index} has type {spec.dtype_text}, but in_types specifies {dtype.text}.")
        if spec.ndim is not None and spec.ndim != ndim:
            raise ShapeError(f"input {index} has {counted(spec.ndim, 'dimension')}, but ins_ndim specifies {ndim}.")
    return tuple(Spec(dtype, ndim, "") for dtype, ndim in zip(out_types, outs_ndim, strict=True))


@functools.lru_cache(maxsize=64)
def compiled(function: Any) -> Any:
    """Return the function compiled with ``nogil``; a compiled function is returned unchanged."""
    return function if isinstance(function, Dispatcher) else numba.njit(nogil=True)(function)


def output_shapes(
    setup_fn: Any, outs_ndim: Sequence[int], in_shapes: Sequence[Sequence[tuple[int, ...]]]
) -> list[list[tuple[int, ...]]]:
    """Return the shapes of each output, one per sample.

    Args:
        setup_fn: the user's function, or None.
        outs_ndim: number of dimensions of each output.
        in_shapes: shapes of each input, one per sample.

    Raises:
        ShapeError: a negative extent.
    """
    if setup_fn is None:
        return [list(shapes) for shapes in in_shapes]
    count = len(in_shapes[0])
    outs = [[np.zeros(ndim, np.int64) for _ in range(count)] for ndim in outs_ndim]
    ins = [[np.array(shape, np.int64) for shape in shapes] for shapes in in_shapes]
    getattr(setup_fn, "py_func", setup_fn)(outs, ins)
    result = [[tuple(int(extent) for extent in shape) for shape in shapes] for shapes in outs]
    for output, shapes in enumerate(result):
        for sample, shape in enumerate(shapes):
            if min(shape, default=0) < 0 or len(shape) != outs_ndim[output]:
                raise ShapeError(f"setup_fn set the invalid shape {shape} for output {output}.", sample=sample)
    return result


@numba_function.cpu_new_samples
def _(
    *xs: Samples,
    run_fn: Any,
    out_types: tuple[DALIDataType, ...],
    outs_ndim: tuple[int, ...],
    setup_fn: Any,
) -> Any:
    run = compiled(run_fn)
    shapes = output_shapes(setup_fn, outs_ndim, [[*map(tuple, x.shapes.tolist())] for x in xs])
    outs = [
        [np.empty(shape, dtype.numpy) for shape in of_output]
        for dtype, of_output in zip(out_types, shapes, strict=True)
    ]
    for arrays in zip(*outs, *(x.arrays() for x in xs), strict=True):
        run(*arrays)
    return tuple(outs)
