"""Extract elements from sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import IndexingError
from dalify.base.optional import torch
from dalify.registry import Spec, operator


@operator(outputs=lambda arguments: len(arguments["element_map"]), allocating=True)
def element_extract(x: Spec, /, *, element_map: list[int]) -> tuple[Spec, ...]:
    """Extract elements along the first axis, each as a separate output.

    Args:
        x: sequences, e.g. FHWC.
        element_map: indices of the elements, from 0.

    Returns:
        one output for each entry of `element_map`: the layout of `x` without its first letter.

    Raises:
        IndexingError: a sequence is too short, or has no dimensions.

    Example:
        >>> first, fourth = fn.element_extract(sequence, element_map=[0, 3])  # doctest: +SKIP
    """
    if not x.ndim:
        raise IndexingError("samples must have at least one dimension.")
    if x.shape is not None:
        for number in element_map:
            if not 0 <= number < x.shape[0]:
                raise IndexingError(f"element {number} does not exist in a sequence of {x.shape[0]} elements.")
    shape = None if x.shape is None else x.shape[1:]
    element = Spec(x.dtype, x.ndim - 1, (x.layout or "")[1:], shape, x.device)
    return (element,) * len(element_map)


@element_extract.view
def _(x: np.ndarray | torch.Tensor, *, element_map: tuple[int, ...]) -> Any:
    return tuple(x[:, number] for number in element_map)
