"""Reductions along axes of the samples of a chunk: sums, means, extrema and deviations.

Shared by reductions and normalization. Integer sums are exact; all other sums are accumulated in float64, so that
results are rounded once.

Outputs have the extents of the input, with the reduced axes removed or kept with extent 1. One compiled call reduces
all samples, whatever their shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dalify.base import scratch
from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.small_arrays import columns_at, zeros
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import store_joined
from dalify.kernels.arrays.joined import converted, joined
from dalify.kernels.arrays.strided import transpose_samples

# Values are added to as many partial sums as fit into a few SIMD registers, then combined.
_LANES = 64
_LANE_BYTES = 512  # of partial extrema
_LEAST_STEPS, _LEAST_LANES = 8, 16  # combining more partial extrema takes longer than finding them
_SHORT = 64  # largest number of floats for which partial extrema are slower than a loop
_FLOAT_BYTES = 4  # of the smallest floats of compiled loops
_NONE = np.empty(0, np.int64)


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _moments(x: np.ndarray, shift: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> None:
    """Accumulate x - shift and its square: x [A, R * B], shift, sums and squares float64 [A, B]."""
    inner = sums.shape[1]
    repeats = max(1, _LANES // inner)
    width = repeats * inner
    lane_shift, lane_sum, lane_square = np.empty(width), np.empty(width), np.empty(width)
    for a in range(x.shape[0]):
        if x.shape[1] <= width:
            for b in range(inner):
                sums[a, b] = 0.0
                squares[a, b] = 0.0
            for i in range(x.shape[1]):
                difference = np.float64(x[a, i]) - shift[a, i % inner]
                sums[a, i % inner] += difference
                squares[a, i % inner] += difference * difference
            continue
        for lane in range(width):
            lane_shift[lane] = shift[a, lane % inner]
            lane_sum[lane] = 0.0
            lane_square[lane] = 0.0
        row = x[a]
        whole = row.size - row.size % width
        for start in range(0, whole, width):
            part = row[start : start + width]
            for lane in range(width):
                difference = np.float64(part[lane]) - lane_shift[lane]
                lane_sum[lane] += difference
                lane_square[lane] += difference * difference
        for lane in range(row.size - whole):
            difference = np.float64(row[whole + lane]) - lane_shift[lane]
            lane_sum[lane] += difference
            lane_square[lane] += difference * difference
        for b in range(inner):
            sums[a, b] = 0.0
            squares[a, b] = 0.0
        for lane in range(width):
            sums[a, lane % inner] += lane_sum[lane]
            squares[a, lane % inner] += lane_square[lane]


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc"})
def _row_moments(x: np.ndarray, shift: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> None:
    """`_moments` for rows that are one result each, without partial sums, which are slow to combine for short rows."""
    for a in range(x.shape[0]):
        center, total, square = shift[a, 0], 0.0, 0.0
        for i in range(x.shape[1]):
            difference = np.float64(x[a, i]) - center
            total += difference
            square += difference * difference
        sums[a, 0], squares[a, 0] = total, square


@njit(nogil=True, cache=True)
def _moments_of_samples(x_at, forms, like, starts, shift, sums, squares, is_centered):
    """Compute `_moments` of samples; if `is_centered`, `shift` must be zeros, and is replaced by the means."""
    for n in range(len(x_at)):
        outer, count, inner = forms[n]
        x, results = array_at(x_at[n], (outer, count * inner), like), slice(starts[n], starts[n] + outer * inner)
        form = (outer, inner)
        center, total, square = (
            shift[results].reshape(form),
            sums[results].reshape(form),
            squares[results].reshape(form),
        )
        for repetition in range(2 if is_centered else 1):
            if repetition:
                for a in range(outer):
                    for b in range(inner):
                        center[a, b] = total[a, b] / count
            if inner == 1:
                _row_moments(x, center, total, square)
            else:
                _moments(x, center, total, square)


@njit(cache=True)
def _fill_forms(forms, starts, shapes, first, last):
    """Compute the shapes ``[A, R, B]`` of samples, where axes `first` to `last` are R, and `starts` of `Collapsed`."""
    total = 0
    for n in range(len(shapes)):
        outer, count, inner = 1, 1, 1
        for axis in range(shapes.shape[1]):
            if axis < first:
                outer *= shapes[n, axis]
            elif axis <= last:
                count *= shapes[n, axis]
            else:
                inner *= shapes[n, axis]
        forms[n, 0], forms[n, 1], forms[n, 2], starts[n] = outer, count, inner, total
        total += outer * inner
    starts[len(shapes)] = total


@njit(nogil=True, cache=True)
def _totals_of_samples(x_at, forms, like, starts, sums):
    """Add up integers, modulo 2 ** 64."""
    for n in range(len(x_at)):
        outer, count, inner = forms[n]
        size = count * inner
        x = array_at(x_at[n], (outer, size), like)
        if inner == 1:  # the compiler computes several sums of a row at once, which are slow to combine otherwise
            for a in range(outer):
                total = np.int64(0)
                for i in range(size):
                    total += np.int64(x[a, i])
                sums[starts[n] + a] = total
            continue
        width = max(1, _LANES // inner) * inner
        lanes = np.empty(width, np.int64)
        for a in range(outer):
            lanes[:] = 0
            for first in range(0, size, width):
                part = x[a, first : first + width]
                for lane in range(len(part)):
                    lanes[lane] += np.int64(part[lane])
            results = sums[starts[n] + a * inner : starts[n] + (a + 1) * inner]
            results[:] = lanes[:inner]
            for first in range(inner, width, inner):
                for b in range(inner):
                    results[b] += lanes[first + b]


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _has_number(row):
    """Return whether an element is not NaN."""
    found = False
    for value in row:
        found |= value == value
    return found


@njit(nogil=True, cache=True)
def _extremes_of_samples(x_at, forms, like, starts, found, start, is_largest, is_integer):
    """Compute extrema, ignoring NaN unless all values are NaN; `start` for results of no values."""
    for n in range(len(x_at)):
        outer, count, inner = forms[n]
        size = count * inner
        x = array_at(x_at[n], (outer, size), like)
        # The compiler finds several extrema of a row at once only if they are integers.
        if inner == 1 and (is_integer or size <= _SHORT):
            for a in range(outer):
                extreme = start
                if is_largest:
                    for i in range(size):
                        extreme = x[a, i] if x[a, i] > extreme else extreme
                else:
                    for i in range(size):
                        extreme = x[a, i] if x[a, i] < extreme else extreme
                if extreme == start and not is_integer and count and not _has_number(x[a]):
                    extreme = x[a, 0]
                found[starts[n] + a] = extreme
            continue
        lanes_at_most = min(_LANE_BYTES // x.itemsize, max(size // _LEAST_STEPS, _LEAST_LANES))
        width = max(1, lanes_at_most // inner) * inner
        lanes = np.empty(width, found.dtype)
        for a in range(outer):
            lanes[:] = start
            for first in range(0, size, width):
                part = x[a, first : first + width]
                if is_largest:
                    for lane in range(len(part)):
                        lanes[lane] = part[lane] if part[lane] > lanes[lane] else lanes[lane]
                else:
                    for lane in range(len(part)):
                        lanes[lane] = part[lane] if part[lane] < lanes[lane] else lanes[lane]
            results = found[starts[n] + a * inner : starts[n] + (a + 1) * inner]
            results[:] = lanes[:inner]
            for first in range(inner, min(width, size), inner):
                for b in range(inner):
                    value = lanes[first + b]
                    if (value > results[b]) if is_largest else (value < results[b]):
                        results[b] = value
            for b in range(inner):
                if count and results[b] == start and not _has_number(x[a, b::inner]):
                    results[b] = x[a, b]


def reduced_dtype(reduction: str, dtype: DALIDataType, requested: DALIDataType | None = None) -> DALIDataType:
    """Return the dtype of a reduction's result.

    Args:
        reduction: ``sum``, ``mean``, ``mean_square``, ``rms``, ``std_dev``, ``variance``, ``min`` or ``max``.
        dtype: dtype of the data.
        requested: the user's dtype; takes precedence.
    """
    if requested is not None:
        return requested
    if reduction in ("min", "max") or dtype == DALIDataType.FLOAT64:
        return dtype
    if reduction == "sum" and not dtype.is_float:
        return DALIDataType.INT64 if dtype.is_signed and dtype != DALIDataType.BOOL else DALIDataType.UINT64
    return DALIDataType.FLOAT


class Collapsed(NamedTuple):
    """The samples of a chunk as ``[A, R, B]`` each, to be reduced along R.

    Attributes:
        x: the samples, with these shapes.
        starts: the index of the first result of each sample, and the number of all results, int64 ``[N + 1]``.
        moved: indices of the samples with reordered axes, int64 ``[M]``.
        order: the order of their axes.
        is_alike: whether all samples are known to have one shape.
    """

    x: Samples
    starts: np.ndarray
    moved: np.ndarray
    order: list[int]
    is_alike: bool

    @property
    def sizes(self) -> np.ndarray:
        """Number of results of each sample, int64 ``[N]``."""
        return self.starts[1:] - self.starts[:-1]

    @property
    def counts(self) -> np.ndarray:
        """The number of values that each result is computed from, int64 ``[results]``, or ``[1]`` for all."""
        counts = self.x.shapes[:, 1]
        return counts[:1] if self.is_alike else np.repeat(counts, self.sizes)

    def results(self, dtype: Any) -> np.ndarray:
        """Return uninitialized results of all samples."""
        return np.empty(int(self.starts[-1]), dtype)


def collapse(x: Samples, axes: Sequence[int]) -> Collapsed:
    """Return samples in the form that the compiled loops reduce.

    Booleans become uint8, float16 becomes float32. Samples in which reduced and kept axes alternate are copied.

    Args:
        x: the samples.
        axes: axes of a sample, not negative.
    """
    is_alike = x.dense is not None
    if x.dtype.kind not in "iu" and x.dtype.itemsize < _FLOAT_BYTES:
        x = converted(x, np.uint8 if x.dtype.kind == "b" else np.float32)
    reduced = sorted(axes)
    first, last = (reduced[0], reduced[-1]) if reduced else (x.ndim, x.ndim - 1)
    shapes, kept = x.shapes, [axis for axis in range(x.ndim) if axis not in reduced]
    forms, starts = np.empty((len(x), 3), np.int64), np.empty(len(x) + 1, np.int64)
    _fill_forms(forms, starts, shapes, first, last)
    addresses, owners, order, moved = x.addresses, [x], [*kept, *reduced], _NONE
    between = [axis for axis in kept if first < axis < last]
    if between:
        moved = np.flatnonzero((columns_at(shapes, between) != 1).any(1))
    if len(moved):
        reordered = Samples.empty(columns_at(shapes[moved], order), x.dtype)
        transpose_samples(reordered, x.take(moved), order)
        addresses = addresses.copy()
        addresses[moved] = reordered.addresses
        extents = reordered.shapes
        forms[moved, 0], forms[moved, 1] = extents[:, : len(kept)].prod(1), extents[:, len(kept) :].prod(1)
        forms[moved, 2] = 1
        np.cumsum(forms[:, 0] * forms[:, 2], out=starts[1:])
        owners.append(reordered)
    return Collapsed(Samples(addresses, forms, x.dtype, owners), starts, moved, order, is_alike)


def result_counts(x: Samples, axes: Sequence[int]) -> np.ndarray:
    """Return the number of results of each sample, int64 ``[N]``."""
    return columns_at(x.shapes, [axis for axis in range(x.ndim) if axis not in axes]).prod(1)


def _moments_along(
    flat: Collapsed, shift: np.ndarray | None = None, *, is_centered: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums and sums of squares of x - shift, float64 ``[results]``; see `_moments_of_samples`.

    They are valid until the next call on the same thread: new arrays for each chunk would cause page faults, which take
    longer than the sums of short rows.
    """
    shape = (int(flat.starts[-1]),)
    sums, squares = scratch.borrow("sums", shape, np.float64), scratch.borrow("sums of squares", shape, np.float64)
    if shift is None:
        shift = scratch.borrow("no shift", shape, np.float64)
        shift[:] = 0
    _moments_of_samples(*flat.x.compiled, flat.starts, shift, sums, squares, is_centered)
    return sums, squares


def _store(out: Samples, values: np.ndarray) -> None:
    """Store float64 results; integers are truncated, as in DALI, not rounded."""
    store_joined(out, np.trunc(values) if out.dtype.kind in "iu" else values)


def _divided(values: np.ndarray, counts: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return float64 sums divided by numbers of values, for results of a type.

    For float32 the rounded sum is multiplied by the rounded 1/n, as in DALI. So the mean of seven values of 3 is
    3.0000002, and conditions such as ``mean > 3`` are true for the same samples as in DALI.
    """
    # An empty reduction is NaN, as 0 / 0, and a sum of squares may exceed the range of float32.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if dtype == np.float32:
            return values.astype(np.float32) * np.reciprocal(counts.astype(np.float32))
        return values / counts.astype(np.float64)


def total(out: Samples, x: Samples, axes: Sequence[int]) -> None:
    """Fill `out` with sums; integers that are out of the range of `out` wrap.

    Args:
        out: samples of any numeric dtype.
        x: samples.
        axes: axes of a sample to reduce.
    """
    if out.dtype.kind == "f":
        _store(out, _moments_along(collapse(x, axes))[0])
        return
    wide = np.uint64 if out.dtype.kind == "u" else np.int64
    flat = collapse(x, axes)
    if x.dtype.kind == "f":
        flat = collapse(converted(converted(x, np.float64), wide), axes)
    sums = flat.results(np.int64)
    _totals_of_samples(*flat.x.compiled, flat.starts, sums)
    store_joined(out, sums.astype(out.dtype))


def mean(out: Samples, x: Samples, axes: Sequence[int]) -> None:
    """Fill `out` with arithmetic means; NaN for an empty reduction."""
    flat = collapse(x, axes)
    _store(out, _divided(_moments_along(flat)[0], flat.counts, out.dtype))


def mean_square(out: Samples, x: Samples, axes: Sequence[int]) -> None:
    """Fill `out` with means of squares."""
    flat = collapse(x, axes)
    _store(out, _divided(_moments_along(flat)[1], flat.counts, out.dtype))


def rms(out: Samples, x: Samples, axes: Sequence[int]) -> None:
    """Fill `out` with the roots of the means of squares."""
    flat = collapse(x, axes)
    _store(out, np.sqrt(_divided(_moments_along(flat)[1], flat.counts, out.dtype)))


def deviations(flat: Collapsed, mean: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return means and sums of squared deviations, float64 ``[results]``.

    The sums are valid until the next reduction on the same thread.

    Args:
        flat: the samples, not empty.
        mean: center of the deviations of each result, float64; None for the means.
    """
    center = zeros(int(flat.starts[-1])) if mean is None else mean
    return center, _moments_along(flat, center, is_centered=mean is None)[1]


def _variances(out: Samples, x: Samples, mean: Samples, axes: Sequence[int], ddof: int) -> np.ndarray:
    flat = collapse(x, axes)
    if x.ndim and not len(axes):  # nothing varies, whatever the mean and ddof are, as in DALI
        return np.zeros(int(flat.starts[-1]))
    values = joined(mean).reshape(-1).astype(np.float64)
    given = mean.shapes.prod(1)
    # One number per result, or one per sample.
    centers = np.repeat(values, np.repeat(np.where(given == 1, flat.sizes, 1), given))
    return _divided(_moments_along(flat, centers)[1], flat.counts - ddof, out.dtype)


def variance(out: Samples, x: Samples, mean: Samples, axes: Sequence[int], ddof: int = 0) -> None:
    """Fill `out` with mean squared deviations from `mean`.

    Args:
        out: samples of a float type.
        x: samples.
        mean: one number per result, or one per sample.
        axes: axes of a sample to reduce.
        ddof: subtracted from the number of values before dividing by it.
    """
    _store(out, _variances(out, x, mean, axes, ddof))


def std_dev(out: Samples, x: Samples, mean: Samples, axes: Sequence[int], ddof: int = 0) -> None:
    """Fill `out` with the square roots of `variance`."""
    with np.errstate(invalid="ignore"):
        _store(out, np.sqrt(_variances(out, x, mean, axes, ddof)))


def minimum(out: Samples, x: Samples, axes: Sequence[int]) -> None:
    """Fill `out` with minima, ignoring NaN; the maximum of the dtype for an empty reduction."""
    _extreme(out, x, axes, is_largest=False)


def maximum(out: Samples, x: Samples, axes: Sequence[int]) -> None:
    """Fill `out` with maxima, ignoring NaN; the minimum of the dtype for an empty reduction."""
    _extreme(out, x, axes, is_largest=True)


def _extreme(out: Samples, x: Samples, axes: Sequence[int], *, is_largest: bool) -> None:
    flat = collapse(x, axes)
    wide: Any = flat.x.dtype
    limits: Any = np.finfo(wide) if wide.kind == "f" else np.iinfo(wide)
    largest, smallest = (np.inf, -np.inf) if wide.kind == "f" else (limits.max, limits.min)
    found = flat.results(wide)
    start = wide.type(smallest if is_largest else largest)
    _extremes_of_samples(*flat.x.compiled, flat.starts, found, start, is_largest, wide.kind != "f")
    if not flat.x.shapes[:, 1].all():
        own: Any = np.finfo(x.dtype) if x.dtype.kind == "f" else limits
        np.putmask(found, np.broadcast_to(flat.counts == 0, found.shape), own.min if is_largest else own.max)
    store_joined(out, found)
