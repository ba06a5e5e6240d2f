"""Draw random elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.base.narrow import is_array
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.data import Samples
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.joined import blocks, joined
from dalify.kernels.arrays.strided import take_rows
from dalify.kernels.random import distributions
from dalify.kernels.random.philox import SampleDraws
from dalify.kernels.random.random_shapes import check_each, random_spec, store_drawn
from dalify.registry import VARIES, PerSample, Shaping, Spec, Vectors, on_groups, operator

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
        raise DTypeError(f"a scalar input must be an integer, the number of choices; got {a.dtype_text}.")
    chosen = random_spec(shape_like, shape, a.dtype, is_known=shape is not VARIES)
    extra = max((a.ndim or 0) - 1, 0)
    ndim = None if chosen.ndim is None else chosen.ndim + extra
    layout = a.layout or ""
    if layout and chosen.ndim != 1:  # one axis of draws replaces the axis of elements; a single draw removes it
        layout = layout[1:] if chosen.ndim == 0 else ""
    if a.shape is not None and chosen.shape is not None:
        return chosen.replace(shape=chosen.shape + a.shape[1:], ndim=ndim, layout=layout)
    return chosen.replace(shape=None, ndim=ndim, layout=layout)


def _check(sizes: np.ndarray, p: Vectors | None) -> None:
    """Check the number of elements of each sample, int64 [N], and the probabilities."""
    check_each((sizes > 0) & (sizes <= _MAX_SIZE), "the number of elements must be positive; got {}.", sizes)
    if p is None:
        return
    lengths = np.array([len(row) for row in p])
    wrong = np.flatnonzero(lengths != sizes)
    if len(wrong):
        first = int(wrong[0])
        text = f"p must have one probability for each of {counted(sizes[first], 'element')}; got {lengths[first]}."
        raise ArgumentValueError(text, sample=first)
    rows = [p] if is_array(p) else [row[None] for row in p]
    is_good = np.concatenate([(row >= 0).all(axis=1) for row in rows])
    check_each(is_good, "probabilities must not be negative; got {}.", p)
    sums = np.concatenate([row.sum(axis=1, dtype=np.float64) for row in rows])
    check_each(np.abs(sums - 1) < 1e-4, "probabilities must sum to 1; the sum is {:.6g}.", sums)


@choice.cpu_samples
def _(out: Samples, a: Samples, _like: Samples | None, *, p: Vectors | None, draws: SampleDraws) -> None:
    sizes = a.extents(0).copy() if a.ndim else joined(a).reshape(-1).astype(np.int64)
    _check(sizes, p)

    def draw(draws: SampleDraws, count: int | np.ndarray, numbers: Any) -> np.ndarray:
        given = [p[n] for n in numbers.tolist()] if isinstance(p, list) and is_array(numbers) else p
        given = given[numbers] if is_array(given) else given
        return distributions.choice(draws, count, sizes[numbers], given, np.int64 if a.ndim else out.dtype)

    if a.ndim == 0:
        store_drawn(out, draws, draw)
        return
    counts = out.shapes[:, : out.ndim - a.ndim + 1].prod(1)
    for numbers in blocks(counts):
        count = int(counts[0]) if out.is_uniform else counts[numbers]
        index = draw(draws.take(numbers), count, numbers)
        take_rows(out.take(numbers), a.take(numbers), index.reshape(-1), counts[numbers])


@choice.gpu_samples
@on_groups()
def _(
    out: torch.Tensor, a: torch.Tensor, _like: torch.Tensor | None, *, p: np.ndarray | None, draws: SampleDraws
) -> None:
    p = None if p is None else np.asarray(p)
    sizes = a.cpu().numpy().astype(np.int64) if a.dim() == 1 else np.full(len(a), a.shape[1], np.int64)
    _check(sizes, p)
    count = int(np.prod(tuple(out.shape[1 : out.dim() - len(a.shape[2:])]), dtype=np.int64))
    index = distributions.choice_torch(draws, count, sizes, out.device, p)
    if a.dim() == 1:
        out.copy_(index.reshape(out.shape))
    else:
        samples = torch.arange(len(a), device=out.device)[:, None]
        movable_torch(out).copy_(movable_torch(a)[samples, index].reshape(out.shape))
