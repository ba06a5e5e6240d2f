"""Maximum along axes."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.kernels.arrays.axes import chosen_axes, reduced_spec
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.reduce import maximum, reduced_dtype
from dalify.kernels.arrays.reduce_torch import maximum_torch
from dalify.registry import Spec, operator


@operator
def max(
    x: Spec,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    keep_dims: bool = False,
) -> Spec:
    """Compute the maximum along axes.

    Args:
        x: data of any type.
        axes: axes to reduce, by default all; negative axes count from the end.
        axis_names: the axes as letters of the layout, instead of `axes`.
        keep_dims: keep the reduced axes, with extent 1 and their letter.

    Returns:
        maxima, of the type of `x`. NaN is ignored; the maximum of no elements is the minimum of the type.

    Raises:
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.

    Example:
        >>> brightest = fn.reductions.max(images)  # doctest: +SKIP
    """
    chosen = chosen_axes(x, axes, axis_names)
    assert x.dtype is not None, "dalify bug: a reduction of unknown type"
    return reduced_spec(x, chosen, reduced_dtype("max", x.dtype), keep_dims=keep_dims)


@max.cpu
def _(out: np.ndarray, x: np.ndarray, *, axes: tuple[int, ...] | None, axis_names: str | None, spec: Spec) -> None:
    maximum(out, x, chosen_axes(spec, axes, axis_names))


@max.gpu_samples
@on_padded
def _(
    out: torch.Tensor,
    x: torch.Tensor,
    *,
    axes: tuple[int, ...] | None,
    axis_names: str | None,
    spec: Spec,
    extents: np.ndarray,
) -> None:
    maximum_torch(out, x, chosen_axes(spec, axes, axis_names), extents)
