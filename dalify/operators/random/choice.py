"""Choose among elements."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.base.optional import torch
from dalify.kernels import distributions
from dalify.kernels.random_shapes import check_each, random_spec
from dalify.registry import VARIES, PerSample, Shaping, Spec, operator

_LARGEST_SIZE = 2**31 - 1


@operator(random=True)
def choice(
    a: Spec,
    shape_like: Spec | None = None,
    /,
    *,
    p: PerSample[list[float]] | None = None,
    shape: Shaping[list[int]] | None = None,
) -> Spec:
    """Choose elements, with repetition.

    Args:
        a: an integer n, to choose among 0, 1, ..., n - 1; or data, whose elements along the first axis are chosen.
        shape_like: data whose shape the result takes.
        p: probability of each element, summing up to 1; all are equally likely without it.
        shape: of the choices for one sample; a single one without it.

    Returns:
        the type of `a`; an element of more dimensions adds these at the end, and `a`'s layout is kept if it still fits.

    Raises:
        DTypeError: `a` is a single number and no integer.
        ArgumentValueError: nothing to choose from, or probabilities that are not one for each element, are negative or
            do not sum up to 1.

    Example:
        >>> angle = fn.random.choice([0, 90, 180, 270])  # doctest: +SKIP
    """
    assert a.dtype is not None, "dalify bug: a choice among elements of unknown type"
    if a.ndim == 0 and not a.dtype.is_integer:
        raise DTypeError(f"a single number to choose below must be an integer; its type is {a.dtype.name}.")
    chosen = random_spec(shape_like, shape, a.dtype, is_known=shape is not VARIES)
    extra = max((a.ndim or 0) - 1, 0)
    ndim = None if chosen.ndim is None else chosen.ndim + extra
    layout = a.layout or ""
    if layout and chosen.ndim != 1:  # several choices stand where the elements stood, a single one does not
        layout = layout[1:] if chosen.ndim == 0 else ""
    if a.shape is not None and chosen.shape is not None:
        return chosen.replace(shape=chosen.shape + a.shape[1:], ndim=ndim, layout=layout)
    return chosen.replace(shape=None, ndim=ndim, layout=layout)


def _sizes(a: np.ndarray, p: np.ndarray | None) -> np.ndarray:
    """Return how many elements each sample chooses among, after checks of these and of `p`."""
    sizes = a.astype(np.int64) if a.ndim == 1 else np.full(len(a), a.shape[1], np.int64)
    check_each((sizes > 0) & (sizes <= _LARGEST_SIZE), "cannot choose among {} elements.", sizes)
    if p is not None:
        if not (sizes == p.shape[-1]).all():
            raise ArgumentValueError(f"p must have one probability for each of {sizes[0]} elements; got {p.shape[-1]}.")
        check_each((p >= 0).all(axis=1), "probabilities must not be negative; got {}.", p)
        sums = p.sum(axis=1, dtype=np.float64)
        check_each(np.abs(sums - 1) < 1e-4, "probabilities must sum up to 1; the sum is {}.", sums)
    return sizes


@choice.cpu
def _(out, a, _like, *, p, draws):
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
def _(out, a, _like, *, p, draws):
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
