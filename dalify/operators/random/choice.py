"""Draw random elements."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.base.optional import torch
from dalify.kernels.random import distributions
from dalify.kernels.random.philox import SampleDraws
from dalify.kernels.random.random_shapes import check_each, random_spec
from dalify.registry import VARIES, PerSample, Shaping, Spec, operator

_MAX_SIZE = 2**31 - 1


@operator(random=True)
def choice(
    a: Spec,
    shape_like: Spec | None = None,
    /,
    *,
    p: PerSample[list[float]] | None = None,
    shape: Shaping[list[int]] | None = None,
) -> Spec:
    """Draw random elements, with repetition.

    Args:
        a: an integer n, to draw from 0, 1, ..., n - 1; or data, to draw its elements along the first axis.
        shape_like: data whose shape the result takes.
        p: probability of each element; the sum must be 1. By default all are equally likely.
        shape: shape of the draws for one sample; by default a single one.

    Returns:
        data of the type of `a`; the dimensions of an element follow those of `shape`. The layout of `a` is kept if it
        still matches.

    Raises:
        DTypeError: `a` is a scalar that is not an integer.
        ArgumentValueError: no elements, or probabilities that do not match the elements, are negative or
            do not sum to 1.

    Example:
        >>> angle = fn.random.choice([0, 90, 180, 270])  # doctest: +SKIP
    """
    assert a.dtype is not None, "dalify bug: a choice from elements of unknown type"
    if a.ndim == 0 and not a.dtype.is_integer:
        raise DTypeError(f"a scalar input must be an integer, the number of choices; got {a.dtype.name}.")
    chosen = random_spec(shape_like, shape, a.dtype, is_known=shape is not VARIES)
    extra = max((a.ndim or 0) - 1, 0)
    ndim = None if chosen.ndim is None else chosen.ndim + extra
    layout = a.layout or ""
    if layout and chosen.ndim != 1:  # one axis of draws replaces the axis of elements; a single draw removes it
        layout = layout[1:] if chosen.ndim == 0 else ""
    if a.shape is not None and chosen.shape is not None:
        return chosen.replace(shape=chosen.shape + a.shape[1:], ndim=ndim, layout=layout)
    return chosen.replace(shape=None, ndim=ndim, layout=layout)


def _sizes(a: np.ndarray, p: np.ndarray | None) -> np.ndarray:
    """Return the number of elements per sample, after checking it and `p`."""
    sizes = a.astype(np.int64) if a.ndim == 1 else np.full(len(a), a.shape[1], np.int64)
    check_each((sizes > 0) & (sizes <= _MAX_SIZE), "the number of elements must be positive; got {}.", sizes)
    if p is not None:
        if not (sizes == p.shape[-1]).all():
            raise ArgumentValueError(f"p must have one probability for each of {sizes[0]} elements; got {p.shape[-1]}.")
        check_each((p >= 0).all(axis=1), "probabilities must not be negative; got {}.", p)
        sums = p.sum(axis=1, dtype=np.float64)
        check_each(np.abs(sums - 1) < 1e-4, "probabilities must sum to 1; the sum is {}.", sums)
    return sizes


@choice.cpu
def _(out: np.ndarray, a: np.ndarray, _like: np.ndarray | None, *, p: np.ndarray | None, draws: SampleDraws) -> None:
    p = None if p is None else np.asarray(p)
    sizes = _sizes(a, p)
    extra = a.shape[2:]
    count = int(np.prod(out.shape[1 : out.ndim - len(extra)], dtype=np.int64))
    index = distributions.choice(draws, count, sizes, p)
    if a.ndim == 1:
        np.copyto(out, index.reshape(out.shape), casting="unsafe")
    else:
        np.copyto(out, a[np.arange(len(a))[:, None], index].reshape(out.shape))


@choice.gpu
def _(
    out: torch.Tensor, a: torch.Tensor, _like: torch.Tensor | None, *, p: np.ndarray | None, draws: SampleDraws
) -> None:
    p = None if p is None else np.asarray(p)
    shape = a.cpu().numpy() if a.dim() == 1 else np.empty(tuple(a.shape[:2]), np.uint8)
    sizes = _sizes(shape, p)
    count = int(np.prod(tuple(out.shape[1 : out.dim() - len(a.shape[2:])]), dtype=np.int64))
    index = distributions.choice_torch(draws, count, sizes, out.device, p)
    if a.dim() == 1:
        out.copy_(index.reshape(out.shape))
    else:
        samples = torch.arange(len(a), device=out.device)[:, None]
        out.copy_(a[samples, index].reshape(out.shape))
