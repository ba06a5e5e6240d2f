"""`dalify.kernels.arrays.reduce` for torch tensors on any device: same rules, same results.

Samples may be padded to one shape by `on_padded`. `extents` are then the shapes without padding, int64 ``[N, ndim]``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dalify.base.optional import torch
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.convert import saturate_cast_torch
from dalify.kernels.arrays.padding_torch import inside_torch
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.wide_torch import wide_dtype, widened

_SIGN_BIT = -(2**63)


def _over(axes: Sequence[int]) -> list[int]:
    return [axis + 1 for axis in axes]


def _counts(x: torch.Tensor, axes: Sequence[int], extents: np.ndarray | None) -> np.ndarray:
    """Return the number of reduced values of each sample, int64 [N]."""
    if extents is None:
        return np.full(len(x), math.prod(x.shape[axis] for axis in _over(axes)))
    return extents[:, list(axes)].prod(1)


def _count(x: torch.Tensor, axes: Sequence[int], extents: np.ndarray | None, ndim: int) -> int | torch.Tensor:
    """Return the number of reduced values: one for all samples, or a tensor [N, 1, ...] of `ndim` dimensions."""
    counts = _counts(x, axes, extents)
    if (counts == counts[:1]).all():
        return int(counts[0])
    return uploaded(counts, x.device).reshape(-1, *[1] * (ndim - 1))


def _sum(x: torch.Tensor, axes: Sequence[int], extents: np.ndarray | None = None) -> torch.Tensor:
    mask = None if extents is None else inside_torch(x, extents, tuple(axes))
    if mask is not None:
        x = x.masked_fill(~mask, 0)
    # torch sums over all axes if `dim` is empty.
    return x.sum(dim=_over(axes)) if axes else x


def _average(
    values: torch.Tensor, axes: Sequence[int], extents: np.ndarray | None, dtype: torch.dtype | None = None
) -> torch.Tensor:
    sums = _sum(values, axes, extents)
    return _divided(sums, _count(values, axes, extents, sums.ndim), dtype)


def _divided(sums: torch.Tensor, count: int | torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """Return sums divided by the number of values, for results of a type; see `dalify.kernels.arrays.reduce`."""
    if isinstance(count, int):  # as a tensor: Python does not divide by zero
        count = torch.full((), count, dtype=wide_dtype(sums.device), device=sums.device)
    return sums.float() * count.float().reciprocal() if dtype == torch.float32 else sums / count


def _wide(x: torch.Tensor) -> torch.Tensor:
    if str(x.dtype) == "torch.uint64":  # int64 interprets the upper half as negative numbers
        bits = x.to(torch.int64)
        values = widened(bits)
        return torch.where(bits < 0, values + 2.0**64, values)
    return widened(x)


def _store(out: torch.Tensor, values: torch.Tensor) -> None:
    values = values.reshape(out.shape)
    saturate_cast_torch(out, values if out.is_floating_point() else values.trunc())


def total_torch(out: torch.Tensor, x: torch.Tensor, axes: Sequence[int], extents: np.ndarray | None = None) -> None:
    """Fill `out` with sums; see `dalify.kernels.arrays.reduce.total`."""
    if out.is_floating_point():
        _store(out, _sum(_wide(x), axes, extents))
    else:
        out.copy_(_sum(x.to(torch.int64), axes, extents).reshape(out.shape))


def mean_torch(out: torch.Tensor, x: torch.Tensor, axes: Sequence[int], extents: np.ndarray | None = None) -> None:
    """Fill `out` with arithmetic means."""
    _store(out, _average(_wide(x), axes, extents, out.dtype))


def mean_square_torch(
    out: torch.Tensor, x: torch.Tensor, axes: Sequence[int], extents: np.ndarray | None = None
) -> None:
    """Fill `out` with means of squares."""
    _store(out, _average(_wide(x).square(), axes, extents, out.dtype))


def rms_torch(out: torch.Tensor, x: torch.Tensor, axes: Sequence[int], extents: np.ndarray | None = None) -> None:
    """Fill `out` with the roots of the means of squares."""
    _store(out, _average(_wide(x).square(), axes, extents, out.dtype).sqrt())


def deviations_torch(
    x: torch.Tensor, axes: Sequence[int], mean: torch.Tensor | None, extents: np.ndarray | None = None
) -> tuple[torch.Tensor, torch.Tensor, int | torch.Tensor]:
    """Return means, sums of squared deviations, and the number of values, as `reduce.deviations`.

    The first two are tensors of `wide_dtype`, [N, ...] with reduced axes kept. The number of values is a tensor
    [N, 1, ...] if it differs between samples.
    """
    wide, over = _wide(x), _over(axes)
    kept = [1 if axis in over else extent for axis, extent in enumerate(x.shape)]
    if mean is None:
        mean = _average(wide, axes, extents)
    elif mean.numel() == len(x) and math.prod(kept) != len(x):
        kept_center = [len(x)] + [1] * (x.dim() - 1)
        mean = mean.reshape(kept_center).expand(kept)
    mean = widened(mean).reshape(kept)
    squares = _sum((wide - mean).square(), axes, extents).reshape(kept)
    return mean, squares, _count(x, axes, extents, x.dim())


def variance_torch(
    out: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    axes: Sequence[int],
    ddof: int = 0,
    extents: np.ndarray | None = None,
) -> None:
    """Fill `out` with mean squared deviations from `mean`."""
    _store(out, _variance(out, x, mean, axes, ddof, extents))


def std_dev_torch(
    out: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    axes: Sequence[int],
    ddof: int = 0,
    extents: np.ndarray | None = None,
) -> None:
    """Fill `out` with the square roots of `variance_torch`."""
    _store(out, _variance(out, x, mean, axes, ddof, extents).sqrt())


def _variance(
    out: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    axes: Sequence[int],
    ddof: int,
    extents: np.ndarray | None,
) -> torch.Tensor:
    if x.dim() > 1 and not len(axes):
        return torch.zeros_like(x, dtype=out.dtype)
    _, squares, count = deviations_torch(x, axes, mean, extents)
    return _divided(squares, count - ddof, out.dtype)


def minimum_torch(out: torch.Tensor, x: torch.Tensor, axes: Sequence[int], extents: np.ndarray | None = None) -> None:
    """Fill `out` with minima, ignoring NaN."""
    _extreme(out, x, axes, extents, is_largest=False)


def maximum_torch(out: torch.Tensor, x: torch.Tensor, axes: Sequence[int], extents: np.ndarray | None = None) -> None:
    """Fill `out` with maxima, ignoring NaN."""
    _extreme(out, x, axes, extents, is_largest=True)


def _extreme(
    out: torch.Tensor, x: torch.Tensor, axes: Sequence[int], extents: np.ndarray | None, *, is_largest: bool
) -> None:
    # The padding repeats edges, which does not change extrema.
    if x.is_floating_point():
        limits = torch.finfo(x.dtype)
        worst = -math.inf if is_largest else math.inf
        values = torch.where(x.isnan(), worst, x)
        empty: float = limits.min if is_largest else limits.max
    else:
        is_unsigned_64 = str(x.dtype) == "torch.uint64"
        values = x.to(torch.int64)
        if is_unsigned_64:
            values = values ^ _SIGN_BIT  # preserves the order of unsigned numbers
        empty = 0 if str(x.dtype) == "torch.bool" else torch.iinfo(x.dtype).min if is_largest else _largest(x)
    is_empty = _counts(x, axes, extents) == 0
    if is_empty.all():
        out.fill_(empty)
        return
    if axes:
        values = values.amax(dim=_over(axes)) if is_largest else values.amin(dim=_over(axes))
    if x.is_floating_point():
        missing = x.isnan().reshape(x.shape)
        values = torch.where(_all(missing, axes), math.nan, values)
    elif str(x.dtype) == "torch.uint64":
        values = values ^ _SIGN_BIT
    out.copy_(values.reshape(out.shape))
    if is_empty.any():
        mask = uploaded(is_empty, x.device).reshape(-1, *[1] * (out.ndim - 1))
        target = movable_torch(out)
        value = movable_torch(torch.full((), empty, dtype=out.dtype, device=x.device))
        target.copy_(torch.where(mask, value, target))


def _all(mask: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    return mask.long().amin(dim=_over(axes)).bool() if axes else mask


def _largest(x: torch.Tensor) -> int:
    return int(torch.iinfo(x.dtype).max)
