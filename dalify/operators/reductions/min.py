"""Find the smallest values along axes."""

from __future__ import annotations

from dalify.kernels.axes import chosen_axes, reduced_spec
from dalify.kernels.reduce import minimum, reduced_dtype
from dalify.kernels.reduce_torch import minimum_torch
from dalify.registry import Spec, operator


@operator
def min(
    x: Spec,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    keep_dims: bool = False,
) -> Spec:
    """Find the smallest values along axes.

    Args:
        x: data of any type.
        axes: axes to reduce, all by default; negative ones count from the back.
        axis_names: the axes by their letters in the layout, instead of `axes`.
        keep_dims: reduced axes stay, with extent 1 and their letter.

    Returns:
        the smallest values, of the type of `x`. NaN is left aside; without elements, the largest value of the type.

    Raises:
        IndexingError: there is no such axis.
        LayoutError: the layout has no such letter.

    Example:
        >>> darkest = fn.reductions.min(images)  # doctest: +SKIP
    """
    chosen = chosen_axes(x, axes, axis_names)
    assert x.dtype is not None, "dalify bug: a reduction of unknown type"
    return reduced_spec(x, chosen, reduced_dtype("min", x.dtype), keep_dims=keep_dims)


@min.cpu
def _(out, x, *, axes, axis_names, spec):
    minimum(out, x, chosen_axes(spec, axes, axis_names))


@min.gpu
def _(out, x, *, axes, axis_names, spec):
    minimum_torch(out, x, chosen_axes(spec, axes, axis_names))
