"""Normalizes data by its mean and standard deviation.

Means and standard deviations may be given, measured per sample, or measured over a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.narrow import is_array
from dalify.base.optional import torch
from dalify.base.small_arrays import columns_at
from dalify.base.wording import counted
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import saturate_cast_torch, store_joined
from dalify.kernels.arrays.joined import blocks, split
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.reduce import collapse, deviations, result_counts
from dalify.kernels.arrays.reduce_torch import deviations_torch
from dalify.kernels.arrays.strided import transpose_samples
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.wide_torch import wide_dtype
from dalify.kernels.arrays.windows_torch import fill_by_kind

# Means and factors are repeated to fill a few SIMD registers.
_LANES = 64


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
    raise ShapeError(
        f"a mean or stddev with {counted(count, 'entry')} matches no axes of samples with shape {tuple(shape)}."
    )


def scale_factors(squares: Any, count: Any, ddof: int, epsilon: float, scale: float, xp: Any) -> Any:
    """Return the factors of deviations: scale / sqrt(variance + epsilon), 0 if variance + epsilon is 0.

    Args:
        squares: sums of squared deviations, float64.
        count: number of summed values; one number, or numbers that broadcast to `squares`.
        ddof: subtracted from `count`.
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
    # NaN is not replaced by 0: it would hide that data, `stddev` or `epsilon` are NaN.
    return xp.where(spread <= 0, 0.0, scale / xp.sqrt(xp.where(spread <= 0, 1.0, spread)))


def given_factors(stddev: np.ndarray, epsilon: float, scale: float) -> np.ndarray:
    """Return `scale_factors` for given standard deviations; without epsilon, the factor has the sign of `stddev`."""
    wide = np.asarray(stddev, np.float64)
    factors = np.asarray(scale_factors(wide * wide, 1, 0, epsilon, scale, np))
    return factors if epsilon else np.copysign(1, wide) * factors


@njit(inline="always")
def _scale_factor(squares, count, ddof, epsilon, scale):
    """`scale_factors` for compiled functions."""
    spread = (squares / (count - ddof) if count > ddof else 0.0) + epsilon
    return 0.0 if spread <= 0 else scale / math.sqrt(spread)


@njit(nogil=True, cache=True, no_cpython_wrapper=True, fastmath={"contract", "nsz", "reassoc"})
def _normalize_rows(out, x, ddof, epsilon, scale, shift):
    """Fill out [A, B] from the rows of x [A, B], each normalized by its own mean and deviation; out may be x."""
    is_in_place = out.ctypes.data == x.ctypes.data
    for a in range(x.shape[0]):
        row, target, count = x[a], out[a], x.shape[1]
        total = 0.0
        for i in range(count):
            total += np.float64(row[i])
        mean, squares = total / count, 0.0
        for i in range(count):
            difference = np.float64(row[i]) - mean
            squares += difference * difference
        factor = np.float32(_scale_factor(squares, count, ddof, epsilon, scale))
        center, offset = np.float32(mean), np.float32(shift)
        if not is_in_place:
            for i in range(count):
                target[i] = row[i]
        for i in range(count):  # in place: the SIMD code for two arrays is used only if they do not overlap
            target[i] = (target[i] - center) * factor + offset


@njit(nogil=True, cache=True)
def _normalize_rows_of_samples(out_at, out_shapes, out_like, x_at, x_shapes, x_like, axes, ddof, epsilon, scale, shift):
    for n in range(len(x_at)):
        rows, size = np.int64(1), np.int64(1)
        for axis in range(x_shapes.shape[1]):
            if axis < x_shapes.shape[1] - axes:
                rows *= x_shapes[n, axis]
            else:
                size *= x_shapes[n, axis]
        form = (rows, size)
        _normalize_rows(
            array_at(out_at[n], form, out_like), array_at(x_at[n], form, x_like), ddof, epsilon, scale, shift
        )


@njit(nogil=True, cache=True)
def _scale_samples(
    out_at, out_like, x_at, forms, like, starts, mean, factor, shift, is_shifted, is_measured, ddof, epsilon, scale
):
    """Compute (x - mean) * factor + shift with one mean and factor for each result, samples [A, R, B].

    If `is_measured`, `factor` is the sum of squared deviations.
    """
    for n in range(len(x_at)):
        outer, count, inner = forms[n]
        size = count * inner
        x, out = array_at(x_at[n], (outer, size), like), array_at(out_at[n], (outer, size), out_like)
        width = max(1, _LANES // inner) * inner
        lane_mean, lane_factor = np.empty(width, out_like.dtype), np.empty(width, out_like.dtype)
        for a in range(outer):
            for lane in range(inner):
                result = starts[n] + a * inner + lane
                lane_mean[lane], found = mean[result], factor[result]
                lane_factor[lane] = _scale_factor(found, count, ddof, epsilon, scale) if is_measured else found
            for lane in range(inner, width):
                lane_mean[lane], lane_factor[lane] = lane_mean[lane - inner], lane_factor[lane - inner]
            for begin in range(0, size, width):
                part, target = x[a, begin : begin + width], out[a, begin : begin + width]
                for i in range(len(part)):
                    target[i] = part[i]
                    target[i] = (target[i] - lane_mean[i]) * lane_factor[i]
                if is_shifted:
                    for i in range(len(part)):
                        target[i] += shift


def normalize(
    out: Samples,
    x: Samples,
    mean: np.ndarray | None,
    factor: np.ndarray | None,
    axes: Sequence[int],
    *,
    ddof: int,
    epsilon: float,
    scale: float,
    shift: float,
) -> None:
    """Fill `out` with (x - mean) * factor + shift.

    Args:
        out: N samples; may be `x` if both are float32, and means and factors are measured along the last axes.
        x: N samples, not empty.
        mean: of each result of all samples, float64 [results]; None to measure.
        factor: like `mean`; None to measure.
        axes: axes of a sample to reduce for means and deviations.
        ddof: see `scale_factors`.
        epsilon: see `scale_factors`.
        scale: see `scale_factors`.
        shift: added to each element.
    """
    is_measured = mean is None and factor is None
    is_direct = out.dtype == np.float32 and (x.dtype == np.float32 or x.dtype.kind in "iu")
    if is_measured and is_direct and sorted(axes) == list(range(x.ndim - len(axes), x.ndim)):
        _normalize_rows_of_samples(*out.compiled, *x.compiled, len(axes), ddof, epsilon, scale, shift)
        return
    options = {"ddof": ddof, "epsilon": epsilon, "scale": scale, "shift": shift}
    parts = blocks(x.shapes.prod(1))
    if len(parts) == 1:
        _normalize_block(out, x, mean, factor, axes, **options)
        return
    ends = np.cumsum(result_counts(x, axes))
    for numbers in parts:
        results = slice(ends[numbers[0] - 1] if numbers[0] else 0, ends[numbers[-1]])
        center, own = (None if values is None else values[results] for values in (mean, factor))
        _normalize_block(out.take(numbers), x.take(numbers), center, own, axes, **options)


def _normalize_block(
    out: Samples,
    x: Samples,
    mean: np.ndarray | None,
    factor: np.ndarray | None,
    axes: Sequence[int],
    *,
    ddof: int,
    epsilon: float,
    scale: float,
    shift: float,
) -> None:
    flat, is_measured = collapse(x, axes), factor is None
    if mean is None or factor is None:
        mean, squares = deviations(flat, mean)
        factor = squares if factor is None else factor
    kind: Any = np.float64 if np.float64 in (x.dtype, out.dtype) else np.float32
    values = None if out.dtype == kind else np.empty(int(x.shapes.prod(1).sum()), kind)
    target = out if values is None else split(values, out.shapes)
    addresses, reordered = target.addresses, None
    if len(flat.moved):
        reordered = Samples.empty(columns_at(x.shapes[flat.moved], flat.order), target.dtype)
        addresses = addresses.copy()
        addresses[flat.moved] = reordered.addresses
    measured = is_measured, ddof, epsilon, scale
    _scale_samples(
        addresses, target.like, *flat.x.compiled, flat.starts, mean, factor, kind(shift), shift != 0, *measured
    )  # fmt: skip
    if reordered is not None:
        transpose_samples(target.take(flat.moved), reordered, np.argsort(flat.order).tolist())
    if values is not None:
        store_joined(out, values)


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
        means: of each sample, an array with as many dimensions as the sample and one element, or one for each result;
            None for all samples to measure.
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
    """Return the parameters of the samples, none of them None, on the device."""
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
    x: Samples | DeviceSamples, axes: Sequence[int], center: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Measure means and squared deviations over all samples of a batch.

    Args:
        x: samples, not empty; extents that are not reduced must be equal.
        axes: axes of a sample to reduce.
        center: center of the deviations, [1, K] or [1, 1]; None for the means.

    Returns:
        means and sums of squared deviations, float64 [1, K], and the number of summed values of each.

    Raises:
        ShapeError: extents that are not reduced differ.
    """
    shapes = {kept_shape(shape, axes) for shape in x.shapes.tolist()}
    if len(shapes) > 1:
        raise ShapeError(
            f"normalize with batch=True needs equal extents along the axes that are not reduced; got {sorted(shapes)}."
        )
    kept = math.prod(next(iter(shapes)))
    count = int(x.shapes.prod(1).sum()) // kept
    measure: Callable[..., np.ndarray] = _sums if isinstance(x, Samples) else _sums_torch
    if center is None:
        center = measure(x, axes, None, kept).reshape(1, -1) / count
    return center, measure(x, axes, center, kept).reshape(1, -1), count


def _sums(x: Samples, axes: Sequence[int], center: np.ndarray | None, kept: int) -> np.ndarray:
    """Return sums over all samples, or with a center the sums of squared deviations, float64 [kept]."""
    repeated = None if center is None else np.repeat(center, len(x) * kept // center.size, axis=0).reshape(-1)
    flat = collapse(x, axes)
    means, squares = deviations(flat, repeated)
    rows = (means * flat.counts if center is None else squares).reshape(len(x), kept)
    return rows.sum(axis=0) if x.dense is not None else np.add.accumulate(rows)[-1]


def _sums_torch(x: DeviceSamples, axes: Sequence[int], center: np.ndarray | None, kept: int) -> np.ndarray:
    """`_sums` for samples on the device; the host waits for the result."""
    out = DeviceSamples.empty(np.full((len(x), 1), kept, np.int64), wide_dtype(x.device), x.device)
    repeated = None if center is None else np.repeat(center, len(x), axis=0)
    _sum_padded(out, x, axes=tuple(axes), center=repeated)
    return out.stacked().dense.sum(0).cpu().numpy().astype(np.float64)


@on_padded
def _sum_padded(
    out: torch.Tensor, x: torch.Tensor, *, axes: tuple[int, ...], center: np.ndarray | None, extents: np.ndarray
) -> None:
    given = None if center is None else uploaded(center, x.device)
    means, squares, count = deviations_torch(x, axes, given, extents)
    out.copy_((means * count if center is None else squares).reshape(out.shape))


def per_result(values: Any, name: str, counts: np.ndarray) -> np.ndarray:
    """Return a given mean or standard deviation of each result of all samples, float64 [results].

    Args:
        values: [N, k], or a list of N vectors.
        name: name of the argument, for the error.
        counts: number of results of each sample.

    Raises:
        ArgumentValueError: a sample has neither one entry nor one per result.
    """
    given = values.shape[1] if is_array(values) else np.array([len(row) for row in values])
    wrong = (given != 1) & (given != counts)
    if wrong.any():
        first = int(wrong.argmax())
        check_parameter(np.asarray(values[first])[None], name, (int(counts[first]),), first)
    flat = np.concatenate(values, axis=None, dtype=np.float64) if isinstance(values, list) else values.reshape(-1)
    found = np.asarray(flat, np.float64)
    if is_array(values):
        return np.repeat(found, counts) if given == 1 else found
    return np.repeat(found, np.repeat(np.where(given == 1, counts, 1), given))


def check_parameter(values: np.ndarray | None, name: str, kept: tuple[int, ...], sample: int | None = None) -> None:
    """Raise an ArgumentValueError if a given mean or standard deviation has neither one entry nor one per result."""
    if values is not None and values.shape[1] not in (1, math.prod(kept)):
        raise ArgumentValueError(
            f"{name} must have 1 or {counted(math.prod(kept), 'entry')} (one per result); got {values.shape[1]}.",
            sample=sample,
        )
