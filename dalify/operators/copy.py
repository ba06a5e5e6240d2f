"""Copy data."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.registry import Spec, operator


@operator
def copy(x: Spec, /) -> Spec:
    """Copy data to new memory.

    Args:
        x: any data.

    Returns:
        the same data.

    Example:
        >>> again = fn.copy(images)  # doctest: +SKIP
    """
    return x


@copy.cpu
def _(out: np.ndarray, x: np.ndarray) -> None:
    np.copyto(out, x)


@copy.gpu
def _(out: torch.Tensor, x: torch.Tensor) -> None:
    out.copy_(x)
