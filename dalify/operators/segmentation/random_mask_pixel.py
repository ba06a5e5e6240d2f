"""Choose a random pixel of a mask."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.kernels.frozen import read_only
from dalify.registry import PerSample, Spec, operator

_BLOCK = 1024
_LEAST, _MOST = -(2**63), 2**63 - 1


@operator(random=True)
def random_mask_pixel(
    x: Spec,
    /,
    *,
    foreground: PerSample[int] = 0,
    threshold: PerSample[float] = 0.0,
    value: PerSample[int] | None = None,
) -> Spec:
    """Choose a random pixel of a mask, each with the same probability.

    Args:
        x: a mask of any dimensions and numeric type.
        foreground: other than 0: choose among the foreground only; where there is none, among all pixels.
        threshold: pixels above it are foreground.
        value: pixels of this value are foreground instead.

    Returns:
        where the pixel is, int64, one number per axis of the mask.

    Raises:
        ShapeError: a mask without axes or without pixels.
        ArgumentValueError: `threshold` together with `value`.

    Example:
        >>> center = fn.segmentation.random_mask_pixel(masks, foreground=1)  # doctest: +SKIP
    """
    if value is not None and (not isinstance(threshold, float) or threshold != 0):
        raise ArgumentValueError("give either threshold or value.")
    if x.ndim == 0 or (x.shape is not None and 0 in x.shape):
        raise ShapeError(f"a mask has pixels; got {'a number' if x.ndim == 0 else f'the shape {x.shape}'}.")
    return Spec(DALIDataType.INT64, 1, "", None if x.ndim is None else (x.ndim,), x.device)


def _limits(threshold: np.ndarray, value: np.ndarray | None, is_integer: bool) -> tuple[list[Any], list[Any]]:
    """Return the least and the greatest foreground value of each sample, of int or float; none: least > greatest."""
    if value is not None:
        exact = [int(v) if is_integer else float(v) for v in value]
        return exact, list(exact)
    if not is_integer:
        # The next number above the threshold: doubles lie closer than any mask's own.
        above = [math.nextafter(t, math.inf) if t == t else math.inf for t in threshold.tolist()]
        return above, [math.inf if t == t and t < math.inf else -math.inf for t in threshold.tolist()]
    least = [
        _MOST if not t < _MOST else max(math.floor(t) + 1, _LEAST) if t > _LEAST else _LEAST for t in threshold.tolist()
    ]
    return least, [_MOST if low < _MOST else _LEAST for low in least]


@njit(nogil=True, cache=True)
def _count(block, least, greatest):
    total = 0
    for i in range(block.size):
        total += (block[i] >= least) & (block[i] <= greatest)
    return total


@njit(nogil=True, cache=True)
def _choose(flat, least, greatest, uniform, counts):
    """Return the place of a pixel between the limits, chosen by a number in [0, 1); -1 where there is none."""
    total = 0
    for b in range(counts.size):
        counts[b] = _count(flat[b * _BLOCK : (b + 1) * _BLOCK], least, greatest)
        total += counts[b]
    if total == 0:
        return -1
    wanted = min(int(uniform * total), total - 1)
    b = 0
    while wanted >= counts[b]:
        wanted -= counts[b]
        b += 1
    i = b * _BLOCK
    while True:
        if (flat[i] >= least) & (flat[i] <= greatest):
            if wanted == 0:
                return i
            wanted -= 1
        i += 1


@random_mask_pixel.cpu
def _(out, x, *, foreground, threshold, value, draws):
    uniforms = draws.uniform(1)[:, 0]
    flat = x.reshape(len(x), -1)
    size = flat.shape[1]
    chosen = np.minimum((uniforms * size).astype(np.int64), size - 1)
    if foreground.any():
        is_integer = x.dtype.kind != "f"
        held = read_only(flat.view(np.uint8) if x.dtype == np.bool_ else flat)
        dtype = held.dtype.type if held.dtype != np.float16 else np.float32
        held = held if held.dtype != np.float16 else read_only(held.astype(np.float32))
        counts = np.empty(-(-size // _BLOCK), np.int64)
        bounds = zip(*_limits(threshold, value, is_integer), strict=True)
        for n, (least, greatest) in enumerate(bounds):
            if foreground[n]:
                low, high = _within(least, greatest, dtype)
                place = -1 if low > high else _choose(held[n], low, high, uniforms[n], counts)
                chosen[n] = chosen[n] if place < 0 else place
    out[:] = np.stack(np.unravel_index(chosen, x.shape[1:]), axis=1)


def _within(least: Any, greatest: Any, dtype: Any) -> tuple[Any, Any]:
    """Return limits in the mask's own type, so that the loop compares equal types; none are left: least > greatest."""
    if issubclass(dtype, np.floating):
        low = dtype(least)  # compared as doubles: numpy would round the limit first
        return (low if float(low) >= least else np.nextafter(low, dtype(np.inf))), dtype(greatest)
    info = np.iinfo(dtype)
    if least > info.max or greatest < info.min:
        return dtype(1), dtype(0)
    return dtype(max(least, info.min)), dtype(min(greatest, info.max))


@random_mask_pixel.gpu
def _(out, x, *, foreground, threshold, value, draws):
    uniforms = torch.as_tensor(draws.uniform(1), device=x.device)
    flat = x.reshape(x.shape[0], -1)
    size = flat.shape[1]
    chosen = (uniforms[:, 0] * size).long().clamp(max=size - 1)
    if foreground.any():
        is_integer = not x.dtype.is_floating_point
        wide = flat.long() if is_integer else flat.double()
        least, greatest = (
            torch.as_tensor(limit, device=x.device, dtype=wide.dtype)[:, None]
            for limit in _limits(threshold, value, is_integer)
        )
        is_inside = (wide >= least) & (wide <= greatest)
        ranks = is_inside.cumsum(1)
        total = ranks[:, -1:]
        wanted = torch.minimum((uniforms * total).long(), (total - 1).clamp(min=0))
        place = (ranks <= wanted).sum(1)
        use = torch.as_tensor(foreground != 0, device=x.device) & (total[:, 0] > 0)
        chosen = torch.where(use, place, chosen)
    axes = []
    for extent in reversed(x.shape[1:]):
        axes.append(chosen % extent)
        chosen = chosen // extent
    out.copy_(torch.stack(axes[::-1], dim=1))
