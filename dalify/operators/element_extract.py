"""Extract elements from sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import IndexingError
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.data import Samples
from dalify.kernels.arrays.axes import check_sequence
from dalify.registry import Spec, on_groups, one_per_entry, operator


@operator(outputs=one_per_entry("element_map", "[0, 3]"))
def element_extract(x: Spec, /, *, element_map: list[int]) -> tuple[Spec, ...]:
    """Extract elements along the first axis, each as a separate output.

    Args:
        x: sequences, e.g. FHWC.
        element_map: indices of the elements, from 0.

    Returns:
        one output for each entry of `element_map`: the layout of `x` without its first letter.

    Raises:
        LayoutError: the first axis is not F.
        IndexingError: a sequence is too short, or has no dimensions.
        NoOutputsError: `element_map` is empty.

    Example:
        >>> first, fourth = fn.element_extract(sequence, element_map=[0, 3])  # doctest: +SKIP
    """
    if not x.ndim:
        raise IndexingError("samples must have at least one dimension.")
    check_sequence(x)
    if x.shape is not None:
        _check(element_map, x.shape[0])
    shape = None if x.shape is None else x.shape[1:]
    element = Spec(x.dtype, x.ndim - 1, (x.layout or "")[1:], shape, x.device)
    return (element,) * len(element_map)


def _check(element_map: Sequence[int], extent: int, sample: int | None = None) -> None:
    for number in element_map:
        if not 0 <= number < extent:
            raise IndexingError(
                f"element {number} does not exist in a sequence of {counted(extent, 'element')}.", sample=sample
            )


def _selected(x: Samples, *, element_map: tuple[int, ...]) -> list[Samples]:
    short = np.flatnonzero((x.shapes[:, 0] <= max(element_map)) | (min(element_map) < 0))
    if len(short):
        _check(element_map, int(x.shapes[short[0], 0]), int(short[0]))
    strides = x.steps()
    size_bytes = strides[:, 0] * x.dtype.itemsize
    return [
        Samples(x.addresses + number * size_bytes, x.shapes[:, 1:], x.dtype, x, strides[:, 1:])
        for number in element_map
    ]


@element_extract.cpu_selection(_selected)
def _(x: np.ndarray, *, element_map: tuple[int, ...]) -> Any:
    return tuple(x[:, number] for number in element_map)


@element_extract.gpu_new_samples
@on_groups(outputs=0)
def _(x: torch.Tensor, *, element_map: tuple[int, ...]) -> Any:
    return tuple(x[:, number] for number in element_map)
