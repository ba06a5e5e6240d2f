"""Reorder the elements of sequences."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import IndexingError, ShapeError
from dalify.base.narrow import is_array
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.data import Samples
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.axes import check_sequence
from dalify.kernels.arrays.strided import take_rows
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.registry import VARIES, Shaping, Spec, Vectors, on_groups, operator


@operator
def sequence_rearrange(x: Spec, /, *, new_order: Shaping[list[int]]) -> Spec:
    """Reorder the elements along the first axis; elements can be repeated or omitted.

    Args:
        x: sequences, e.g. FHWC.
        new_order: index of the element of `x` for each element of the result.

    Returns:
        the rearranged elements, with the layout of `x`.

    Raises:
        IndexingError: an index is out of range.
        LayoutError: the first axis is not F.
        ShapeError: an empty order, or samples without dimensions.

    Example:
        >>> reverse = fn.sequence_rearrange(sequence, new_order=[2, 1, 0])  # doctest: +SKIP
    """
    if not x.ndim:
        raise ShapeError("samples must have at least one dimension.")
    check_sequence(x)
    if new_order is VARIES or x.shape is None:
        return x.replace(shape=None)
    if not len(new_order):
        raise ShapeError("new_order must contain at least one element.")
    for number in new_order:
        if not 0 <= number < x.shape[0]:
            raise IndexingError(f"new_order contains {number}; the sequence has {counted(x.shape[0], 'element')}.")
    return x.replace(shape=(len(new_order), *x.shape[1:]))


@sequence_rearrange.cpu_samples
def _(out: Samples, x: Samples, *, new_order: Vectors) -> None:
    indices = new_order.reshape(-1) if is_array(new_order) else np.concatenate(new_order)
    take_rows(out, x, indices.astype(np.int64), out.extents(0))


@sequence_rearrange.gpu_samples
@on_groups(shaping=("new_order",))  # the first row applies to the whole group
def _(out: torch.Tensor, x: torch.Tensor, *, new_order: np.ndarray) -> None:
    order = uploaded(new_order[0], x.device, np.int64)
    movable_torch(out).copy_(movable_torch(x).index_select(1, order))
