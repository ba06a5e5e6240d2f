"""`dalify.kernels.arrays.reduce` for torch tensors on any device: same rules, same results.

A separate module because torch is only loaded for pipelines that use an accelerator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dalify.base.optional import torch
from dalify.kernels.arrays.convert import saturate_cast_torch

__all__ = [
    "deviations_torch",
    "maximum_torch",
    "mean_square_torch",
    "mean_torch",
    "minimum_torch",
    "rms_torch",
    "std_dev_torch",
    "total_torch",
    "variance_torch",
]

_SIGN_BIT = -(2**63)


def _over(axes: Sequence[int]) -> list[int]:
    return [axis + 1 for axis in axes]


def _count(x: torch.Tensor, axes: Sequence[int]) -> int:
    return math.prod(x.shape[axis] for axis in _over(axes))


def _sum(x: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    # torch interprets "no axes" as "all axes".
    return x.sum(dim=_over(axes)) if axes else x


def _wide(x: torch.Tensor) -> torch.Tensor:
    if str(x.dtype) == "torch.uint64":  # torch interprets its upper half as negative numbers
        bits = x.to(torch.int64)
        return torch.where(bits < 0, bits.double() + 2.0**64, bits.double())
    return x.double()


def _store(out: torch.Tensor, values: torch.Tensor) -> None:
    values = values.reshape(out.shape)
    saturate_cast_torch(out, values if out.is_floating_point() else values.trunc())


def total_torch(out: torch.Tensor, x: torch.Tensor, axes: Sequence[int]) -> None:
    """Fill `out` with sums; see `dalify.kernels.arrays.reduce.total`."""
    if out.is_floating_point():
        _store(out, _sum(_wide(x), axes))
    else:
        out.copy_(_sum(x.to(torch.int64), axes).reshape(out.shape))


def mean_torch(out: torch.Tensor, x: torch.Tensor, axes: Sequence[int]) -> None:
    """Fill `out` with arithmetic means."""
    _store(out, _sum(_wide(x), axes) / _count(x, axes))


def mean_square_torch(out: torch.Tensor, x: torch.Tensor, axes: Sequence[int]) -> None:
    """Fill `out` with means of squares."""
    _store(out, _sum(_wide(x).square(), axes) / _count(x, axes))


def rms_torch(out: torch.Tensor, x: torch.Tensor, axes: Sequence[int]) -> None:
    """Fill `out` with the roots of the means of squares."""
    _store(out, (_sum(_wide(x).square(), axes) / _count(x, axes)).sqrt())


def deviations_torch(
    x: torch.Tensor, axes: Sequence[int], center: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return means, sums of squared deviations (float64 [N, ...] with reduced axes kept), and the number of values.

    See `dalify.kernels.arrays.reduce.deviations`.
    """
    wide, over, count = _wide(x), _over(axes), _count(x, axes)
    kept = [1 if axis in over else extent for axis, extent in enumerate(x.shape)]
    if center is None:
        center = _sum(wide, axes) / count
    elif center.numel() == len(x) and math.prod(kept) != len(x):
        kept_center = [len(x)] + [1] * (x.dim() - 1)
        center = center.reshape(kept_center).expand(kept)
    center = center.double().reshape(kept)
    return center, _sum((wide - center).square(), axes).reshape(kept), count


def variance_torch(
    out: torch.Tensor, x: torch.Tensor, center: torch.Tensor, axes: Sequence[int], ddof: int = 0
) -> None:
    """Fill `out` with mean squared deviations from `center`."""
    _, squares, count = deviations_torch(x, axes, center)
    _store(out, squares / torch.full((), count - ddof, dtype=torch.float64, device=x.device))


def std_dev_torch(out: torch.Tensor, x: torch.Tensor, center: torch.Tensor, axes: Sequence[int], ddof: int = 0) -> None:
    """Fill `out` with the square roots of `variance_torch`."""
    _, squares, count = deviations_torch(x, axes, center)
    _store(out, (squares / torch.full((), count - ddof, dtype=torch.float64, device=x.device)).sqrt())


def minimum_torch(out: torch.Tensor, x: torch.Tensor, axes: Sequence[int]) -> None:
    """Fill `out` with minima, ignoring NaN."""
    _extreme(out, x, axes, is_largest=False)


def maximum_torch(out: torch.Tensor, x: torch.Tensor, axes: Sequence[int]) -> None:
    """Fill `out` with maxima, ignoring NaN."""
    _extreme(out, x, axes, is_largest=True)


def _extreme(out: torch.Tensor, x: torch.Tensor, axes: Sequence[int], *, is_largest: bool) -> None:
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
    if not _count(x, axes):
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


def _all(mask: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    return mask.long().amin(dim=_over(axes)).bool() if axes else mask


def _largest(x: torch.Tensor) -> int:
    return int(torch.iinfo(x.dtype).max)
