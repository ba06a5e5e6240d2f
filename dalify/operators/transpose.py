"""Reorder axes."""

from __future__ import annotations

from collections.abc import Sequence

from dalify.base.errors import ArgumentValueError
from dalify.data import DeviceSamples, Samples
from dalify.kernels.arrays.axes import check_layout
from dalify.kernels.arrays.strided import transpose_samples
from dalify.kernels.arrays.windows_torch import transpose_samples_torch
from dalify.registry import Spec, operator


@operator
def transpose(
    x: Spec, /, *, output_layout: str | None = None, perm: list[int] | None = None, transpose_layout: bool = True
) -> Spec:
    """Reorder the axes of each sample.

    Args:
        x: any data.
        output_layout: layout of the result; does not affect the order.
        perm: axis of `x` for each axis of the result; by default reversed.
        transpose_layout: also reorder the letters of the layout; False: keep the layout.

    Returns:
        the same elements, reordered.

    Raises:
        ArgumentValueError: `perm` is not a permutation of the axes.
        LayoutError: `output_layout` does not match the dimensions.

    Example:
        >>> planar = fn.transpose(images, perm=[2, 0, 1])  # HWC to CHW  # doctest: +SKIP
    """
    assert x.ndim is not None, "dalify bug: axes of data of unknown dimensions"
    order = _order(perm, x.ndim)
    shape = None if x.shape is None else tuple(x.shape[axis] for axis in order)
    layout = x.layout or ""
    if output_layout is not None:
        layout = output_layout
        check_layout(layout, x.ndim)
    elif transpose_layout and layout:
        layout = "".join(layout[axis] for axis in order)
    return x.replace(shape=shape, layout=layout)


def _order(perm: Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    if perm is None:
        return tuple(range(ndim))[::-1]
    if sorted(perm) != list(range(ndim)):
        raise ArgumentValueError(f"perm must be a permutation of the axes 0 to {ndim - 1}; got {tuple(perm)}.")
    return tuple(perm)


@transpose.cpu_samples
def _(out: Samples, x: Samples, *, perm: tuple[int, ...] | None) -> None:
    transpose_samples(out, x, _order(perm, x.ndim))


@transpose.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, perm: tuple[int, ...] | None) -> None:
    transpose_samples_torch(out, x, _order(perm, x.ndim))
