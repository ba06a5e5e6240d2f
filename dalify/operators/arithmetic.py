"""Element-wise functions: the node that ``+``, ``<``, ``abs()`` and ``dalify.math`` create in a graph."""

from __future__ import annotations

import numpy as np

from dalify.data import DeviceSamples
from dalify.kernels.arrays.arithmetic import compute
from dalify.kernels.arrays.arithmetic_torch import compute_samples_torch
from dalify.kernels.arrays.promotion import broadcast_shape, common_layout, result_dtype
from dalify.registry import Spec, operator


@operator(stands_for="arithmetic", foldable=True)
def arithmetic(*operands: Spec, function: str) -> Spec:
    """Apply a function to every element of the operands.

    Users write ``a + b``, ``a < b``, ``-a`` or ``dalify.math.sqrt(a)``. Operands are promoted to a common type: floats
    take precedence over integers, wider types over narrower ones, UINT8 and INT8 become INT16; Python integers are
    INT32 and Python floats FLOAT. Integers wrap on overflow. ``/`` of integers gives FLOAT; ``//`` truncates the
    quotient of integers toward zero and does not round the quotient of floats; ``%`` has the sign of the dividend; an
    integer to a negative power is 0.

    Unlike DALI: FLOAT16 is supported, and stays FLOAT16 when combined with integers; negative integers compare with
    floats by their value; ``rsqrt(0)`` is infinite; shifting by negative numbers, or by at least the number of bits
    of the type, gives 0 (-1 for ``>>`` of negative values).

    Args:
        operands: any types; samples broadcast against each other, aligned at the last axis. Layouts must be equal, or
            one must be a suffix of the other.
        function: a name in `dalify.kernels.arrays.promotion.FUNCTIONS`.

    Returns:
        data of the broadcast shape, with the longest layout if it has a letter for each dimension.

    Raises:
        DTypeError: the function is not defined for these types, e.g. the sum of two BOOL.
        LayoutError: layouts contradict each other.
        ShapeError: shapes do not broadcast.
        ArgumentValueError: an integer is divided by zero.

    Example:
        >>> normalized = (images - 127.5) / 127.5  # doctest: +SKIP
    """
    dtype = result_dtype(function, *(operand.dtype for operand in operands if operand.dtype is not None))
    layout = common_layout([operand.layout or "" for operand in operands])
    ndim = max(operand.ndim or 0 for operand in operands)
    shapes = [operand.shape for operand in operands]
    shape = broadcast_shape(*(item for item in shapes if item is not None)) if None not in shapes else None
    return Spec(dtype, ndim, layout if len(layout) == ndim else "", shape, operands[0].device)


@arithmetic.cpu_elements
def _(out: np.ndarray, *operands: np.ndarray, function: str) -> None:
    compute(function, out, *operands)


@arithmetic.gpu_samples
def _(out: DeviceSamples, *operands: DeviceSamples, function: str) -> None:
    compute_samples_torch(function, out, *operands)
