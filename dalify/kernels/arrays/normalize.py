"""Normalizes data by its mean and standard deviation.

Means and deviations may be given, measured per sample, or measured over a batch. The arithmetic is fused: one
subtraction and one multiplication per element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.optional import torch
from dalify.data.batch import Batch
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.kernels.arrays.arithmetic import compute
from dalify.kernels.arrays.convert import saturate_cast, saturate_cast_torch
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.reduce import deviations
from dalify.kernels.arrays.reduce_torch import deviations_torch
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.windows_torch import fill_by_kind

__all__ = [
    "batch_statistics",
    "check_parameter",
    "given_factors",
    "kept_shape",
    "normalize",
    "normalize_rows",
    "normalize_samples_torch",
    "parameter_axes",
    "scale_factors",
]


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return a shape with the extents of reduced axes replaced by 1."""
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))


def parameter_axes(shape: Sequence[int], count: int, channels: int) -> tuple[int, ...]:
    """Return the axes to normalize over that match a mean with `count` entries.

    Args:
        shape: shape of a sample.
        count: number of entries of the given mean or standard deviation, more than one.
        channels: the axis to try first.

    Raises:
        ShapeError: no axis or run of axes has this extent.
    """
    ndim = len(shape)
    runs = [(channels, channels + 1)] + [(first, last) for last in range(ndim, 0, -1) for first in range(last)]
    for first, last in runs:
        if math.prod(shape[first:last]) == count:
            return tuple(axis for axis in range(ndim) if not first <= axis < last)
    raise ShapeError(f"a mean or stddev with {count} entries matches no axes of samples with shape {tuple(shape)}.")


def scale_factors(squares: Any, count: Any, ddof: int, epsilon: float, scale: float, xp: Any) -> Any:
    """Return the factors of deviations: scale / sqrt(variance + epsilon), 0 if the variance is 0.

    Args:
        squares: sums of squared deviations, float64.
        count: number of summed values, or one that broadcasts to `squares`.
        ddof: subtracted from ``count``.
        epsilon: added to the variance.
        scale: standard deviation of the result.
        xp: NumPy or torch.
    """
    # Without degrees of freedom the variance is 0, as in DALI.
    if isinstance(count, (int, float)):
        variance = squares / (count - ddof) if count > ddof else squares * 0.0
    else:
        variance = xp.where(count > ddof, squares / (count - ddof).clip(1), 0.0)
    spread = variance + epsilon
    return xp.where(spread > 0, scale / xp.sqrt(xp.where(spread > 0, spread, 1.0)), 0.0)


def given_factors(stddev: np.ndarray, epsilon: float, scale: float) -> np.ndarray:
    """Return the factors of deviations for given standard deviations."""
    wide = np.asarray(stddev, np.float64)
    factors = np.asarray(scale_factors(wide * wide, 1, 0, epsilon, scale, np))
    return factors if epsilon else np.copysign(1, wide) * factors


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc"})
def _normalize_rows(out, x, ddof, epsilon, scale, shift):
    """Fill out [A, B] from the rows of x [A, B], each normalized by its own mean and deviation."""
    for a in range(x.shape[0]):
        row, target, count = x[a], out[a], x.shape[1]
        total = 0.0
        for i in range(count):
            total += np.float64(row[i])
        mean, squares = total / count, 0.0
        for i in range(count):
            difference = np.float64(row[i]) - mean
            squares += difference * difference
        spread = (squares / (count - ddof) if count > ddof else 0.0) + epsilon
        factor = np.float32(scale / math.sqrt(spread)) if spread > 0 else np.float32(0)
        center, offset = np.float32(mean), np.float32(shift)
        for i in range(count):
            target[i] = (row[i] - center) * factor + offset


@njit(nogil=True, cache=True)
def _normalize_rows_of_samples(out_at, out_shapes, out_like, x_at, x_shapes, x_like, ddof, epsilon, scale, shift):
    for n in range(len(x_at)):
        form = (x_shapes[n, 0], x_shapes[n, 1])
        _normalize_rows(
            array_at(out_at[n], form, out_like), array_at(x_at[n], form, x_like), ddof, epsilon, scale, shift
        )


def normalize_rows(
    out: Samples, x: Samples, axes: int, *, ddof: int, epsilon: float, scale: float, shift: float
) -> None:
    """Fill `out` with the rows of `x`, each normalized by its own mean and standard deviation, in one pass.

    Args:
        out: N samples of float32.
        x: N samples of float32, not empty.
        axes: number of last axes that form a row.
        ddof: as in `normalize`, like the following ones.
        epsilon: see `ddof`.
        scale: see `ddof`.
        shift: see `ddof`.
    """
    first = x.ndim - axes
    rows = np.stack([x.shapes[:, :first].prod(1), x.shapes[:, first:].prod(1)], 1)
    target, source = out.reshaped(rows), x.reshaped(rows)
    _normalize_rows_of_samples(*target.compiled, *source.compiled, ddof, epsilon, scale, shift)


def normalize(
    out: np.ndarray,
    x: np.ndarray,
    mean: np.ndarray | None,
    factor: np.ndarray | None,
    axes: Sequence[int],
    **options: Any,
) -> None:
    """Fill `out` with (x - mean) * factor + shift.

    Args:
        out: array [N, ...].
        x: array [N, ...].
        mean: float64 [N, K], one per result or one per sample; None to measure.
        factor: float64 [N, K] like `mean`; None to measure.
        axes: axes of a sample to reduce for means and deviations.
        options: ddof, epsilon, scale, shift.
    """
    kept = (len(x), *kept_shape(x.shape[1:], axes))
    is_plain = mean is None and factor is None and x.dtype == out.dtype == np.float32 and x.size > 0
    if is_plain and sorted(axes) == list(range(x.ndim - 1 - len(axes), x.ndim - 1)):  # whole rows: one pass for all
        normalize_rows(Samples.of_dense(out), Samples.of_dense(x), len(axes), **options)
        return
    if mean is None or factor is None:
        mean, squares, count = deviations(x, axes, mean)
        if factor is None:
            factor = np.asarray(
                scale_factors(squares, count, options["ddof"], options["epsilon"], options["scale"], np)
            )
    kind = np.float64 if np.float64 in (x.dtype, out.dtype) else np.float32
    target = out if out.dtype == kind else np.empty(x.shape, kind)
    compute("sub", target, x, _spread(mean, kept).astype(kind))
    compute("mul", target, target, _spread(factor, kept).astype(kind))
    if options["shift"]:
        target += kind(options["shift"])
    if target is not out:
        saturate_cast(out, target)


def _spread(values: np.ndarray, kept: tuple[int, ...]) -> np.ndarray:
    """Broadcast values to [N, extents or 1]."""
    if values.size == math.prod(kept):
        return values.reshape(kept)
    return values.reshape(kept[0], *[1] * (len(kept) - 1))


def normalize_samples_torch(
    out: DeviceSamples,
    x: DeviceSamples,
    means: Sequence[np.ndarray | None],
    factors: Sequence[np.ndarray | None],
    axes: Sequence[tuple[int, ...]],
    **options: Any,
) -> None:
    """`normalize` for samples on the device, in one call for all samples with the same axes.

    Args:
        out: output with the shapes of `x`.
        x: N samples.
        means: of each sample, None for all to measure, or of the number of dimensions of a sample: one number, or one
            for each result.
        factors: like `means`.
        axes: of each sample, the axes to reduce for means and deviations.
        options: ddof, epsilon, scale, shift.
    """

    def fill(part: DeviceSamples, numbers: np.ndarray) -> None:
        chosen = [None if rows[0] is None else [rows[n] for n in numbers] for rows in (means, factors)]
        given = [None if rows is None else _as_samples(rows, x.device) for rows in chosen]
        source = x if len(numbers) == len(x) else x.take(numbers)
        _normalize_padded(part, source, *given, axes=axes[numbers[0]], **options)

    fill_by_kind(out, axes, fill)  # extents decide on the axes of a given mean


def _as_samples(rows: Sequence[np.ndarray | None], device: Any) -> DeviceSamples:
    """Return parameters of samples on the device."""
    arrays = [row for row in rows if row is not None]
    sizes = np.array([row.size for row in arrays])
    block = uploaded(np.concatenate([row.reshape(-1) for row in arrays]), device)
    found = DeviceSamples(block, np.cumsum(sizes) - sizes, np.array([row.shape for row in arrays], np.int64))
    return found.stacked() if found.is_uniform else found


@on_padded
def _normalize_padded(
    out: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor | None,
    factor: torch.Tensor | None,
    *,
    axes: tuple[int, ...],
    ddof: int,
    epsilon: float,
    scale: float,
    shift: float,
    extents: np.ndarray,
) -> None:
    if mean is None or factor is None:
        kept = (len(x), *kept_shape(tuple(x.shape[1:]), axes))
        mean, squares, count = deviations_torch(x, axes, None if mean is None else mean.expand(kept), extents)
        if factor is None:
            factor = torch.as_tensor(scale_factors(squares, count, ddof, epsilon, scale, torch))
    kind = torch.float64 if torch.float64 in (x.dtype, out.dtype) else torch.float32
    values = (x.to(kind) - mean.to(kind)) * factor.to(kind)
    saturate_cast_torch(out, values + shift if shift else values)


def batch_statistics(
    batch: Batch, axes: Sequence[int], center: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Measure means and squared deviations over all samples of a batch.

    Args:
        batch: on any device; extents that are not reduced must be equal.
        axes: axes of a sample to reduce.
        center: center of the deviations, [1, K] or [1, 1]; None for the means.

    Returns:
        means and sums of squared deviations, float64 [1, K], and the number of summed values of each.

    Raises:
        ShapeError: extents that are not reduced differ.
    """
    shapes = {kept_shape(shape, axes) for shape in batch.shapes()}
    if len(shapes) > 1:
        raise ShapeError(
            f"normalize with batch=True needs equal extents along the axes that are not reduced; got {sorted(shapes)}."
        )
    kept = math.prod(next(iter(shapes)))
    count = sum(math.prod(shape) for shape in batch.shapes()) // max(kept, 1)
    measure = _sums if batch.device == "cpu" else _sums_torch
    if center is None:
        center = measure(batch, axes, None, kept).reshape(1, -1) / max(count, 1)
    return center, measure(batch, axes, center, kept).reshape(1, -1), count


def _sums(batch: Batch, axes: Sequence[int], center: np.ndarray | None, kept: int) -> np.ndarray:
    """Return sums over all samples, or with a center those of squared deviations, float64 [kept]."""
    total = np.zeros(kept)
    for group in [batch.dense] if batch.dense is not None else [sample[None] for sample in batch.samples]:
        if not group.size:  # it has no mean
            continue
        repeated = None if center is None else np.repeat(center, len(group), axis=0)
        means, squares, each = deviations(group, axes, repeated)
        total += (means * each if center is None else squares).reshape(len(group), -1).sum(axis=0)
    return total


def _sums_torch(batch: Batch, axes: Sequence[int], center: np.ndarray | None, kept: int) -> np.ndarray:
    """Return the same for samples on the device, measured together; the host waits for the result."""
    x = DeviceSamples.of_batch(batch)
    filled = np.flatnonzero(x.shapes.all(1))
    if not len(filled):
        return np.zeros(kept)
    x = x if len(filled) == len(x) else x.take(filled)
    out = DeviceSamples.empty(np.full((len(x), 1), kept, np.int64), torch.float64, x.device)
    repeated = None if center is None else np.repeat(center, len(x), axis=0)
    _sum_padded(out, x, axes=tuple(axes), center=repeated)
    return out.stacked().dense.sum(0).cpu().numpy()


@on_padded
def _sum_padded(
    out: torch.Tensor, x: torch.Tensor, *, axes: tuple[int, ...], center: np.ndarray | None, extents: np.ndarray
) -> None:
    given = None if center is None else uploaded(center, x.device)
    means, squares, count = deviations_torch(x, axes, given, extents)
    out.copy_((means * count if center is None else squares).reshape(out.shape))


def check_parameter(values: np.ndarray | None, name: str, kept: tuple[int, ...]) -> None:
    """Raise an error if a given mean or standard deviation has neither one entry nor one per result."""
    if values is not None and values.shape[1] not in (1, math.prod(kept)):
        raise ArgumentValueError(
            f"{name} must have 1 or {math.prod(kept)} entries (one per result); got {values.shape[1]}."
        )
