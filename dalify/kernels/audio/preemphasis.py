"""Preemphasis: the first-order filter that amplifies high frequencies of speech."""

from __future__ import annotations

import numpy as np

from dalify.base.array_at import flat_at
from dalify.base.compiling import njit
from dalify.base.optional import torch
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import saturate_cast_samples, saturate_cast_torch
from dalify.kernels.arrays.upload_torch import uploaded

BORDERS = ("zero", "clamp", "reflect")


@njit(nogil=True, cache=True)
def _filter(out_at, out_shapes, out_like, x_at, x_shapes, x_like, preemph_coeff, border):
    for n in range(len(x_at)):
        target, source = flat_at(out_at[n], out_shapes[n], out_like), flat_at(x_at[n], x_shapes[n], x_like)
        coefficient = preemph_coeff[n]
        before = source[1] if border == 2 and source.size > 1 else source[0]
        target[0] = source[0] if border == 0 else source[0] - coefficient * before
        for t in range(1, source.size):
            target[t] = source[t] - coefficient * source[t - 1]


def preemphasis(out: Samples, x: Samples, preemph_coeff: np.ndarray, border: str) -> None:
    """Fill `out` with ``x[t] - coefficient * x[t - 1]``, computed in float32, or in float64 if `x` is float64.

    Args:
        out: N samples of any numeric dtype, output; integers are rounded and saturated.
        x: N samples of any numeric dtype, with at least one value each.
        preemph_coeff: float32 [N].
        border: value before the first one: 0 ("zero"), the first ("clamp") or the second value ("reflect").
    """
    kind = np.dtype(np.float64 if x.dtype == np.float64 else np.float32)
    source = x if x.dtype == kind else x.converted(kind)
    target = out if out.dtype == kind else Samples.empty(out.shapes, kind)
    _filter(*target.compiled, *source.compiled, preemph_coeff.astype(kind, copy=False), BORDERS.index(border))
    if target is not out:
        saturate_cast_samples(out, target)


def _before(border: str, samples: int) -> int:
    """Return the index of the sample used before the first one."""
    return 1 if border == "reflect" and samples > 1 else 0


def preemphasis_torch(out: torch.Tensor, x: torch.Tensor, preemph_coeff: np.ndarray, border: str) -> None:
    """`preemphasis` for torch tensors on any device."""
    kind = torch.float64 if x.dtype == torch.float64 else torch.float32
    source = x.to(kind)
    first = _before(border, x.shape[1])
    before = source[:, first : first + 1]
    if border == "zero":
        before = torch.zeros_like(before)
    factors = uploaded(preemph_coeff, x.device).to(kind)[:, None]
    saturate_cast_torch(out, source - factors * torch.cat([before, source[:, :-1]], 1))
