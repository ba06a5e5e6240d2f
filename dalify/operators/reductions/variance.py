"""Measure the spread along axes by the variance."""

from __future__ import annotations

from dalify.kernels import reduce
from dalify.kernels.axes import check_centre, chosen_axes, reduced_spec
from dalify.kernels.reduce_torch import variance_torch
from dalify.registry import Spec, operator


@operator
def variance(
    x: Spec,
    mean: Spec,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    ddof: int = 0,
    keep_dims: bool = False,
) -> Spec:
    """Average squared deviations from a given mean along axes.

    Args:
        x: data of any type.
        mean: centre of the deviations: one number per sample, or one for each result, as ``fn.reductions.mean`` with
            the same axes gives (with or without its ``keep_dims``).
        axes: axes to reduce, all by default; negative ones count from the back.
        axis_names: the axes by their letters in the layout, instead of `axes`.
        ddof: what is subtracted from the number of elements before dividing by it; 1 for an unbiased estimate.
        keep_dims: reduced axes stay, with extent 1 and their letter.

    Returns:
        variances: FLOAT, or FLOAT64 of FLOAT64.

    Raises:
        IndexingError: there is no such axis.
        LayoutError: the layout has no such letter.
        ShapeError: `mean` has neither one element nor as many as there are results.

    Example:
        >>> spread = fn.reductions.variance(images, fn.reductions.mean(images))  # doctest: +SKIP
    """
    chosen = chosen_axes(x, axes, axis_names)
    assert x.dtype is not None, "dalify bug: a reduction of unknown type"
    result = reduced_spec(x, chosen, reduce.reduced_dtype("variance", x.dtype), keep_dims=keep_dims)
    check_centre(mean, result)
    return result


@variance.cpu
def _(out, x, mean, *, axes, axis_names, ddof, spec):
    reduce.variance(out, x, mean, chosen_axes(spec, axes, axis_names), ddof)


@variance.gpu
def _(out, x, mean, *, axes, axis_names, ddof, spec):
    variance_torch(out, x, mean, chosen_axes(spec, axes, axis_names), ddof)
