"""Call a Numba-compiled function per sample, on all threads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from dalify.base.wording import counted
from dalify.data import DALIDataType, Samples
from dalify.registry import Parameters, Spec, operator


def count_outputs(arguments: Mapping[str, Any]) -> int:
    """Return the number of outputs."""
    return len(arguments["out_types"])


@dataclass(slots=True)
class CompiledFunction(Parameters):
    """A function that Numba compiles, and the declaration of its arguments.

    Attributes:
        run_fn: ``run_fn(out0, ..., in0, ...)`` fills the outputs of one sample; it is compiled on the first call.
        out_types: element type of each output.
        in_types: element type of each input.
        outs_ndim: number of dimensions of each output.
        ins_ndim: number of dimensions of each input.
        setup_fn: ``setup_fn(outs, ins)`` sets the shapes of the outputs: ``outs[i][sample]`` and ``ins[i][sample]``
            are int64 arrays of extents. Without it, each output has the shape of the input with the same index.
    """

    run_fn: object
    out_types: list[DALIDataType]
    in_types: list[DALIDataType]
    outs_ndim: list[int]
    ins_ndim: list[int]
    setup_fn: object = None

    def specs(self, xs: Sequence[Spec]) -> tuple[Spec, ...]:
        """Check the declaration and the inputs, and return the specs of the outputs."""
        if not isinstance(self.run_fn, Callable):
            raise ArgumentTypeError(f"run_fn must be a function; got {type(self.run_fn).__name__}.")
        for one, other, first, second in (
            ("out_types", "outs_ndim", self.out_types, self.outs_ndim),
            ("in_types", "ins_ndim", self.in_types, self.ins_ndim),
            ("in_types", "the inputs", self.in_types, xs),
        ):
            if len(first) != len(second):
                raise ArgumentValueError(
                    f"{one} and {other} must have equal lengths; got {len(first)} and {len(second)}."
                )
        if self.setup_fn is None and len(self.out_types) != len(self.in_types):
            raise ArgumentValueError(
                "without setup_fn, the number of outputs must equal the number of inputs; got "
                f"{len(self.out_types)} and {len(self.in_types)}.",
                hint="Pass setup_fn(outs, ins), which sets the shapes of the outputs.",
            )
        for index, (spec, dtype, ndim) in enumerate(zip(xs, self.in_types, self.ins_ndim, strict=True)):
            if spec.dtype is not None and spec.dtype != dtype:
                raise DTypeError(f"input {index} has type {spec.dtype_text}, but in_types specifies {dtype.text}.")
            if spec.ndim is not None and spec.ndim != ndim:
                raise ShapeError(f"input {index} has {counted(spec.ndim, 'dimension')}, but ins_ndim specifies {ndim}.")
        return tuple(Spec(dtype, ndim, "") for dtype, ndim in zip(self.out_types, self.outs_ndim, strict=True))

    def compiled(self) -> Any:
        """Return the function compiled with ``nogil``; a compiled function is returned unchanged."""
        return _compiled(self.run_fn)

    def new_outputs(self, in_shapes: Sequence[Sequence[tuple[int, ...]]]) -> list[list[np.ndarray[Any, Any]]]:
        """Return memory for each output, one array per sample.

        Args:
            in_shapes: shapes of each input, one per sample.

        Raises:
            ShapeError: ``setup_fn`` set a negative extent, or another number of extents.
        """
        shapes = [list(of_input) for of_input in in_shapes] if self.setup_fn is None else self._set_up(in_shapes)
        return [
            [np.empty(shape, dtype.numpy) for shape in of_output]
            for dtype, of_output in zip(self.out_types, shapes, strict=True)
        ]

    def _set_up(self, in_shapes: Sequence[Sequence[tuple[int, ...]]]) -> list[list[tuple[int, ...]]]:
        count = len(in_shapes[0])
        outs = [[np.zeros(ndim, np.int64) for _ in range(count)] for ndim in self.outs_ndim]
        ins = [[np.array(shape, np.int64) for shape in shapes] for shapes in in_shapes]
        set_up: Any = self.setup_fn
        getattr(set_up, "py_func", set_up)(outs, ins)
        result = [[tuple(int(extent) for extent in shape) for shape in shapes] for shapes in outs]
        for output, shapes in enumerate(result):
            for sample, shape in enumerate(shapes):
                if min(shape, default=0) < 0 or len(shape) != self.outs_ndim[output]:
                    raise ShapeError(f"setup_fn set the invalid shape {shape} for output {output}.", sample=sample)
        return result


@functools.lru_cache(maxsize=64)
def _compiled(function: Any) -> Any:
    return function if isinstance(function, Dispatcher) else numba.njit(nogil=True)(function)


@operator(outputs=count_outputs, user_code=True)
def numba_function(
    *xs: Spec,
    function: CompiledFunction,
    blocks: object = None,
    threads_per_block: object = None,
) -> tuple[Spec, ...]:
    """Call a function that Numba compiles on each sample. It runs in parallel on all threads, without the GIL.

    Args:
        *xs: any inputs on the CPU.
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
    return function.specs(xs)


@numba_function.cpu_new_samples
def _(*xs: Samples, function: CompiledFunction) -> Any:
    run = function.compiled()
    outs = function.new_outputs([[*map(tuple, x.shapes.tolist())] for x in xs])
    for arrays in zip(*outs, *(x.arrays() for x in xs), strict=True):
        run(*arrays)
    return tuple(outs)
