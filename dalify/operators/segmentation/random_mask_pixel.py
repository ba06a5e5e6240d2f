"""Draw a random pixel of a mask."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.array_at import flat_at
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.optional import torch
from dalify.base.small_arrays import rows_at
from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.arrays.joined import converted
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.wide_torch import widened
from dalify.kernels.random.philox import SampleDraws
from dalify.registry import PerSample, Spec, on_groups, operator

_BLOCK = 1024
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


@operator(random=True)
def random_mask_pixel(
    x: Spec,
    /,
    *,
    foreground: PerSample[int] = 0,
    threshold: PerSample[float] = 0.0,
    value: PerSample[int] | None = None,
) -> Spec:
    """Draw a random pixel of a mask, uniformly.

    Args:
        x: a mask with any number of dimensions and any numeric type.
        foreground: non-zero: draw from the foreground only, or from all pixels if there is no foreground.
        threshold: pixels above it are foreground.
        value: pixels of this value are foreground instead.

    Returns:
        coordinates of the pixel, int64, one number per axis of the mask.

    Raises:
        ShapeError: the mask has no axes or no pixels.
        ArgumentValueError: `threshold` together with `value`.

    Example:
        >>> center = fn.segmentation.random_mask_pixel(masks, foreground=1)  # doctest: +SKIP
    """
    if value is not None and (not isinstance(threshold, float) or threshold != 0):
        raise ArgumentValueError("specify either threshold or value.")
    if x.ndim == 0 or (x.shape is not None and 0 in x.shape):
        raise ShapeError(f"a mask must have pixels; got {'a scalar' if x.ndim == 0 else f'the shape {x.shape}'}.")
    return Spec(DALIDataType.INT64, 1, "", None if x.ndim is None else (x.ndim,), x.device)


def _limits(threshold: np.ndarray, value: np.ndarray | None, is_integer: bool) -> tuple[list[Any], list[Any]]:
    """Return minimum and maximum of the foreground values of each sample, int or float; none: minimum > maximum."""
    if value is not None:
        exact = [int(v) if is_integer else float(v) for v in value]
        return exact, list(exact)
    if not is_integer:
        # The next float64 above the threshold: float64 is at least as precise as any mask type.
        above = [math.nextafter(t, math.inf) if t == t else math.inf for t in threshold.tolist()]
        return above, [math.inf if t == t and t < math.inf else -math.inf for t in threshold.tolist()]
    minimum = [
        _INT64_MAX if not t < _INT64_MAX else max(math.floor(t) + 1, _INT64_MIN) if t > _INT64_MIN else _INT64_MIN
        for t in threshold.tolist()
    ]
    return minimum, [_INT64_MAX if low < _INT64_MAX else _INT64_MIN for low in minimum]


@njit(nogil=True, cache=True)
def _count(block, minimum, maximum):
    total = 0
    for i in range(block.size):
        total += (block[i] >= minimum) & (block[i] <= maximum)
    return total


@njit(nogil=True, cache=True)
def _choose(flat, minimum, maximum, uniform, counts):
    """Return the index of a pixel between the limits, selected by a number in [0, 1); -1 if there is none."""
    total = 0
    for b in range(counts.size):
        counts[b] = _count(flat[b * _BLOCK : (b + 1) * _BLOCK], minimum, maximum)
        total += counts[b]
    if total == 0:
        return -1
    rank = min(int(uniform * total), total - 1)
    b = 0
    while rank >= counts[b]:
        rank -= counts[b]
        b += 1
    i = b * _BLOCK
    while True:
        if (flat[i] >= minimum) & (flat[i] <= maximum):
            if rank == 0:
                return i
            rank -= 1
        i += 1


@njit(nogil=True, cache=True)
def _choose_each(chosen, x_at, x_shapes, like, minimum, maximum, uniforms):
    counts = np.empty(0, np.int64)
    for n in range(len(x_at)):
        flat = flat_at(x_at[n], x_shapes[n], like)
        blocks = (flat.size + _BLOCK - 1) // _BLOCK
        if blocks > counts.size:
            counts = np.empty(blocks, np.int64)
        chosen[n] = _choose(flat, minimum[n], maximum[n], uniforms[n], counts[:blocks])


@random_mask_pixel.geometry
def _(x: Batch) -> dict[str, Any]:
    shapes = x.shape_array()
    if not x.ndim or not shapes.all():
        return {}  # the rule names the sample
    return {"out_shapes": np.full((len(x), 1), x.ndim, np.int64)}


@random_mask_pixel.cpu_samples
def _(
    out: Samples,
    x: Samples,
    *,
    foreground: np.ndarray,
    threshold: np.ndarray,
    value: np.ndarray | None,
    draws: SampleDraws,
) -> None:
    uniforms = draws.uniform(1)[:, 0]
    sizes = x.shapes.prod(1)
    chosen = np.minimum((uniforms * sizes).astype(np.int64), sizes - 1)
    if foreground.any():
        values = converted(x, np.float32) if x.dtype == np.float16 else x
        like = values.like.view(np.uint8) if x.dtype == np.bool_ else values.like
        minimum, maximum = _limits_in_mask_type(threshold, value, like.dtype)
        at = np.flatnonzero((foreground != 0) & (minimum <= maximum))
        places = np.empty(len(at), np.int64)
        _choose_each(
            places, values.addresses[at], rows_at(values.shapes, at), like, minimum[at], maximum[at], uniforms[at]
        )
        chosen[at] = np.where(places < 0, chosen[at], places)
    assert out.dense is not None, "dalify bug: coordinates of different numbers of axes"
    for axis in range(x.ndim - 1, -1, -1):
        extents = x.extents(axis)
        out.dense[:, axis] = chosen % extents
        chosen //= extents


def _limits_in_mask_type(
    threshold: np.ndarray, value: np.ndarray | None, dtype: np.dtype[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of each sample in the type of the mask, [N]; no values: minimum > maximum."""
    given = threshold if value is None else value
    unique, places = np.unique(given, return_inverse=True)
    limits = _limits(unique, None if value is None else unique, dtype.kind != "f")
    found = [_in_mask_type(*pair, dtype.type) for pair in zip(*limits, strict=True)]
    minimum, maximum = (np.array(side, dtype)[places] for side in zip(*found, strict=True))
    return minimum, maximum


def _in_mask_type(minimum: Any, maximum: Any, dtype: Any) -> tuple[Any, Any]:
    """Return the limits in the type of the mask, for comparisons of equal types; no values: minimum > maximum."""
    if issubclass(dtype, np.floating):
        low = dtype(minimum)  # compared as float64: NumPy would round the limit first
        return (low if float(low) >= minimum else np.nextafter(low, dtype(np.inf))), dtype(maximum)
    info = np.iinfo(dtype)
    if minimum > info.max or maximum < info.min:
        return dtype(1), dtype(0)
    return dtype(max(minimum, info.min)), dtype(min(maximum, info.max))


@random_mask_pixel.gpu_samples
@on_groups()
def _(
    out: torch.Tensor,
    x: torch.Tensor,
    *,
    foreground: np.ndarray,
    threshold: np.ndarray,
    value: np.ndarray | None,
    draws: SampleDraws,
) -> None:
    uniforms = uploaded(draws.uniform(1), x.device)
    flat = x.reshape(x.shape[0], -1)
    size = flat.shape[1]
    chosen = (uniforms[:, 0] * size).long().clamp(max=size - 1)
    if foreground.any():
        is_integer = not x.dtype.is_floating_point
        wide = flat.long() if is_integer else widened(flat)
        minimum, maximum = (
            uploaded(limit, x.device).to(wide.dtype)[:, None] for limit in _limits(threshold, value, is_integer)
        )
        is_inside = (wide >= minimum) & (wide <= maximum)
        ranks = is_inside.cumsum(1)
        total = ranks[:, -1:]
        rank = torch.minimum((uniforms * total).long(), (total - 1).clamp(min=0))
        place = (ranks <= rank).sum(1)
        use = uploaded(foreground != 0, x.device) & (total[:, 0] > 0)
        chosen = torch.where(use, place, chosen)
    axes = []
    for extent in reversed(x.shape[1:]):
        axes.append(chosen % extent)
        chosen = chosen // extent
    out.copy_(torch.stack(axes[::-1], dim=1))
