"""Convolution filters: separable filters along each axis, and non-separable two-dimensional filters.

Sums are computed in float32, and rounded and saturated once at the end. Borders are reflected without repeating the
edge pixel (``dcb|abcd|cba``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import LayoutError
from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import in_float32, saturate_cast_torch, store_joined
from dalify.kernels.arrays.grid_torch import Grid
from dalify.kernels.arrays.joined import blocks, converted, split
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.windows_torch import bordered_samples_torch, window_samples_torch
from dalify.kernels.dispatch import prefer_triton
from dalify.kernels.images.separable import SymmetricKernels, filter_images

if TYPE_CHECKING:
    from torch import Tensor

_FILTERED_TYPES = (np.dtype(np.uint8), np.dtype(np.float32))  # others are converted to float32 before they are filtered
_VOLUME_AXES = 3
_MAX_BLOCK = 128  # NumPy's ``sum`` divides more elements into blocks


@njit(cache=True)
def gaussian_sigma(window_size: int) -> float:
    """Return the standard deviation, in pixels, for a window size: ``(radius - 1) * 0.3 + 0.8``, as in OpenCV."""
    return ((window_size - 1) * 0.5 - 1) * 0.3 + 0.8


@njit(cache=True)
def gaussian_window(sigma: float) -> int:
    """Return the window size, in pixels, for a standard deviation: ``2 * ceil(3 * sigma) + 1``."""
    return 2 * math.ceil(3 * sigma) + 1


@njit(cache=True)
def complete_gaussians(
    sigmas: np.ndarray,
    sizes: np.ndarray,
    given_sigmas: np.ndarray,
    given_sizes: np.ndarray,
    max_sigma: float,
    max_size: int,
) -> int:
    """Compute the standard deviations and window sizes that are 0, one of each pair, from the others.

    Args:
        sigmas: standard deviations in pixels, float64 [N], output.
        sizes: window sizes in pixels, int64 [N], output.
        given_sigmas: standard deviations or 0, float32 [N].
        given_sizes: window sizes or 0, int32 [N].
        max_sigma: maximum of a standard deviation.
        max_size: maximum of a window size.

    Returns:
        index of the first pair that is refused, because a value is negative, not a number, an even size or too large,
        or both are 0; -1 if there is none.
    """
    for n in range(len(sigmas)):
        sigma, size = np.float64(given_sigmas[n]), np.int64(given_sizes[n])
        if not 0 <= sigma <= max_sigma or not 0 <= size <= max_size or (size % 2 == 0 and (size or sigma == 0)):
            return n
        sigmas[n] = sigma if sigma else gaussian_sigma(given_sizes[n])
        sizes[n] = size if size else gaussian_window(sigma)
    return -1


def gaussian_kernels(sigmas: np.ndarray, sizes: np.ndarray) -> SymmetricKernels:
    """Return Gaussians with the sum 1.

    Args:
        sigmas: standard deviation in pixels, > 0, of each frame and axis, float64 [N, axes].
        sizes: size of each window in pixels, odd, int64 [N, axes].
    """
    ends = np.add.accumulate(sizes.reshape(-1))
    radii = sizes // 2
    weights = np.empty(ends[-1])
    _fill_exponents(weights, sigmas.reshape(-1), ends)
    np.exp(weights, out=weights)  # np.exp in compiled functions has other rounding errors
    found = np.empty(len(weights), np.float32)
    if np.maximum.reduce(sizes, None) > _MAX_BLOCK:
        for part, values in zip(np.split(found, ends[:-1]), np.split(weights, ends[:-1]), strict=True):
            part[:] = values / values.sum()
    else:
        _normalize(found, weights, ends)
    return SymmetricKernels(found, ends.reshape(sizes.shape) - 1 - radii, radii)


@njit(cache=True)
def _fill_exponents(out: np.ndarray, sigmas: np.ndarray, ends: np.ndarray) -> None:
    """Fill `out` with the exponents of Gaussians that end at the indices `ends`."""
    start = 0
    for n in range(len(ends)):
        radius = (ends[n] - start) // 2
        for place in range(start, ends[n]):
            deviation = (place - start - radius) / sigmas[n]
            out[place] = -0.5 * (deviation * deviation)
        start = ends[n]


@njit(cache=True)
def _normalize(out: np.ndarray, weights: np.ndarray, ends: np.ndarray) -> None:
    """Divide Gaussians of at most `_MAX_BLOCK` weights by their sum, which is added in the order of NumPy's ``sum``."""
    parts = np.empty(8)
    start = 0
    for n in range(len(ends)):
        end = ends[n]
        total, rest = 0.0, start
        if end - start >= 8:
            for place in range(8):  # assigning a slice would take 2 s to compile
                parts[place] = weights[start + place]
            rest = start + (end - start) // 8 * 8
            for place in range(start + 8, rest):
                parts[(place - start) % 8] += weights[place]
            total = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]))
        for place in range(rest, end):
            total += weights[place]
        for place in range(start, end):
            out[place] = weights[place] / total
        start = end


def data_axes(layout: str, ndim: int) -> tuple[int, int]:
    """Return the first filtered axis and the number of filtered axes: all except leading F and C and trailing C.

    If the data has no layout, all axes are filtered.

    Raises:
        LayoutError: C is between the others, or fewer than 1 or more than 3 axes are filtered.
    """
    letters = layout or "?" * ndim
    first = len(letters) - len(letters.lstrip("FC"))
    inner = letters[first:].removesuffix("C")
    if "C" in inner or "F" in inner or not 1 <= len(inner) <= 3:
        raise LayoutError(
            f"a filter needs 1 to 3 adjacent data axes, with C first or last; the layout is {letters!r}.",
            hint="Transpose first, for example to HWC.",
        )
    return first, len(inner)


def mirrored_indices(size: int, radius: int) -> np.ndarray:
    """Return the source indices of positions -radius … size - 1 + radius for reflect-101 borders, int64.

    A window wider than the axis is reflected repeatedly; an axis with one element repeats it.
    """
    if size == 1:
        return np.zeros(1 + 2 * radius, np.int64)
    period = 2 * (size - 1)
    position = np.arange(-radius, size + radius) % period
    return np.minimum(position, period - position)


def bordered_indices(size: int, before: int, after: int, border: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the source indices of positions -before … size - 1 + after, and which positions are padding.

    Args:
        size: extent of the axis.
        before: number of positions before it.
        after: number of positions after it.
        border: "reflect_101", "reflect_1001", "wrap", "clamp", or "constant" or its synonym "fill".

    Returns:
        int64 indices within the axis, and booleans that are True for positions to fill with the constant.
    """
    position = np.arange(-before, size + after)
    outside = (position < 0) | (position >= size) if border in ("constant", "fill") else np.zeros(position.size, bool)
    if border == "wrap":
        position = position % size
    elif border == "reflect_1001":
        position = position % (2 * size)
        position = np.minimum(position, 2 * size - 1 - position)
    elif border == "reflect_101":
        widest = max(before, after)
        position = mirrored_indices(size, widest)[widest - before : 2 * widest + size - (widest - after)]
    return np.clip(position, 0, size - 1), outside


def convolve_samples(out: Samples, x: Samples, kernels: SymmetricKernels, first_axis: int) -> None:
    """Filter each sample with one kernel per axis.

    Args:
        out: samples of any dtype with the shapes of `x`, output.
        x: N samples of any dtype. Fastest for uint8 and float32.
        kernels: kernels of N samples.
        first_axis: the first filtered axis of a sample; the others follow it.
    """
    if x.dtype in _FILTERED_TYPES and (out.dtype == np.float32 or out.dtype == x.dtype):
        _convolve(out, x, kernels, first_axis)
        return

    def fill(target: Samples, source: Samples, numbers: np.ndarray) -> None:
        _convolve(target, source, kernels.take(numbers), first_axis)

    in_float32(out, x, fill)


def _convolve(out: Samples, x: Samples, kernels: SymmetricKernels, first_axis: int) -> None:
    """`convolve_samples` for uint8 or float32, to the same type or to float32."""
    out, _ = out.folded(first_axis)
    x, owners = x.folded(first_axis)
    if owners is not None:
        kernels = kernels.take(owners)
    if kernels.axes == _VOLUME_AXES:
        for numbers in blocks(x.shapes.prod(1)):
            _convolve_volumes(out.take(numbers), x.take(numbers), kernels.take(numbers))
    else:
        filter_images(out, x, _image_shapes(x, kernels.axes), kernels)


def _convolve_volumes(out: Samples, x: Samples, kernels: SymmetricKernels) -> None:
    """Filter volumes along the first axis, and the slices of the result along the other two."""
    between = Samples.empty(x.shapes, np.dtype(np.float32))
    filter_images(between, x, _image_shapes(x, 1), kernels.of_axes(0))
    (slices, owners), (targets, _) = between.folded(1), out.folded(1)
    assert owners is not None, "dalify bug: slices without their volumes"
    filter_images(targets, slices, _image_shapes(slices, 2), kernels.of_axes(1, 2).take(owners))


def _image_shapes(x: Samples, axes: int) -> np.ndarray:
    """Return rows, columns and channels of samples of which the first or the first two axes are filtered, int64 [N, 3].

    If only one axis is filtered, the elements along the others are channels of a single column.
    """
    shapes = x.shapes
    found = np.ones((len(shapes), 3), np.int64)
    found[:, :axes] = shapes[:, :axes]
    for axis in range(axes, shapes.shape[1]):
        found[:, 2] *= shapes[:, axis]
    return found


def sum_convolutions(out: Samples, x: Samples, terms: Sequence[SymmetricKernels], first_axis: int) -> None:
    """Fill `out` with sums of several results of `convolve_samples` in float32.

    Args:
        out: samples with the shapes of `x`, output.
        x: N samples.
        terms: the kernels of each term, at least one.
        first_axis: the first filtered axis of a sample; the others follow it.
    """
    sizes = x.shapes.prod(1)
    for numbers in blocks(sizes):
        is_all = len(numbers) == len(x)
        target, source = (out, x) if is_all else (out.take(numbers), x.take(numbers))
        source = source if x.dtype in _FILTERED_TYPES else converted(source, np.dtype(np.float32))
        parts = [np.empty(int(sizes[numbers].sum()), np.float32) for _ in terms[:2]]
        for number, kernels in enumerate(terms):
            part = parts[number > 0]
            of_block = kernels if is_all else kernels.take(numbers)
            _convolve(split(part, source.shapes), source, of_block, first_axis)
            np.add(parts[0], part if number else 0, out=parts[0])  # 0: sums are never -0
        store_joined(target, parts[0])


@prefer_triton("convolution", "convolve_samples")
def convolve_samples_torch(
    out: DeviceSamples, x: DeviceSamples, kernels: Sequence[Sequence[np.ndarray]], first_axis: int
) -> None:
    """`convolve_samples` for samples on the device, none of them empty: one pass over the results per axis and tap."""
    if x.dense is not None and out.dense is not None:
        convolve_axes_torch(out.dense, x.dense, kernels, first_axis + 1)
        return
    saturate_cast_torch(out.block, _sum_of_filtered(out, x, [kernels], first_axis))


@prefer_triton("convolution", "sum_convolutions")
def sum_convolutions_torch(
    out: DeviceSamples, x: DeviceSamples, terms: Sequence[Sequence[Sequence[np.ndarray]]], first_axis: int
) -> None:
    """`sum_convolutions` for samples on the device, none of them empty."""
    if x.dense is None or out.dense is None:
        saturate_cast_torch(out.block, _sum_of_filtered(out, x, terms, first_axis))
        return
    total: Tensor | None = None
    for kernels in terms:
        part = torch.empty(out.dense.shape, dtype=torch.float32, device=x.device)
        convolve_axes_torch(part, x.dense, kernels, first_axis + 1)
        total = part if total is None else total.add_(part)
    assert total is not None, "dalify bug: a sum without terms"
    saturate_cast_torch(out.dense, total)


def _sum_of_filtered(
    out: DeviceSamples, x: DeviceSamples, terms: Sequence[Sequence[Sequence[np.ndarray]]], first_axis: int
) -> Tensor:
    """Return the sum of filtered samples as a float32 buffer with the offsets of `out`."""
    tables = [[_centered([each[number] for each in kernels]) for number in range(len(kernels[0]))] for kernels in terms]
    widths = np.max([[table.shape[1] for table in of_term] for of_term in tables], axis=0)
    filtered = slice(first_axis, first_axis + len(widths))
    shapes, begin = x.shapes.copy(), np.zeros_like(x.shapes)
    shapes[:, filtered] += widths - 1
    begin[:, filtered] = -(widths // 2)
    strides = [shapes[:, axis + 1 :].prod(1) for axis in range(filtered.start, filtered.stop)]
    sizes = shapes.prod(1)
    ends = np.cumsum(sizes)
    # Each pass reads beyond the last sample, and its result is shorter.
    after = sum((width - 1) * int(each.max()) for width, each in zip(widths.tolist(), strides, strict=True))
    block = torch.empty(int(ends[-1]) + after, dtype=torch.float32, device=x.device)
    padded = DeviceSamples(block, ends - sizes, shapes)
    bordered_samples_torch(padded, x, begin, "reflect_101")
    flat = padded.flattened()
    grid = Grid(flat, flat, 1)
    total: Tensor | None = None
    for of_term in tables:
        found, anchor = block, np.zeros_like(shapes)
        for table, each in zip(of_term, strides, strict=True):
            found = _weighted_sums(found, grid, table, each)
        anchor[:, filtered] = [(width - table.shape[1]) // 2 for width, table in zip(widths, of_term, strict=True)]
        result = torch.empty(out.block.shape, dtype=torch.float32, device=x.device)
        target = DeviceSamples(result, out.offsets, out.shapes)
        window_samples_torch(target, DeviceSamples(found, padded.offsets, shapes), anchor)
        total = result if total is None else total.add_(result)
    assert total is not None, "dalify bug: a sum without terms"
    return total


def _weighted_sums(block: Tensor, grid: Grid, weights: np.ndarray, strides: np.ndarray) -> Tensor:
    """Return the weighted sum of each window of elements along an axis, at the position of its first element.

    The sums of windows that exceed the axis are arbitrary. Elements after the last whole window are missing.

    Args:
        block: elements of the samples, float32.
        grid: grid of the elements.
        weights: weights of each sample, float32 [N, width of the window].
        strides: stride of the axis in elements, int64 [N].
    """
    size = block.numel() - (weights.shape[1] - 1) * int(strides.max())
    first = int(strides[0])
    origin = stride = None
    if (strides != first).any():
        origin = torch.arange(size, dtype=grid.kind, device=block.device)
        stride = grid.of_sample(strides)[:size]
    total: Tensor | None = None
    for tap, column in enumerate(weights.T):
        if origin is None or stride is None or tap == 0:
            values = block[tap * first : tap * first + size]
        else:
            values = block.index_select(0, torch.add(origin, stride, alpha=tap))
        if (column == column[0]).all():
            weight = float(column[0])
            total = values * weight if total is None else total.add_(values, alpha=weight)
        else:
            product = values * grid.of_sample(column)[:size]
            total = product if total is None else total.add_(product)
    assert total is not None, "dalify bug: a kernel without taps"
    return total


def _centered(kernels: Sequence[np.ndarray]) -> np.ndarray:
    """Return kernels of several odd lengths as float32 [N, widest]; shorter ones are centered in the widest."""
    weights = np.zeros((len(kernels), max(kernel.size for kernel in kernels)), np.float32)
    for row, kernel in zip(weights, kernels, strict=True):
        begin = (row.size - kernel.size) // 2
        row[begin : begin + kernel.size] = kernel
    return weights


def convolve_axes_torch(out: Tensor, x: Tensor, kernels: Sequence[Sequence[np.ndarray]], first_axis: int) -> None:
    """`convolve_samples` for torch tensors [N, ...]; `first_axis` counts axis 0."""
    result = x.float()
    for i in range(len(kernels[0])):
        axis = first_axis + i
        weights = _centered([kernel[i] for kernel in kernels])
        widest = weights.shape[1]
        table = uploaded(weights, x.device)
        if widest == 1:
            result = result * table.reshape(-1, *[1] * (x.ndim - 1))
            continue
        indices = uploaded(mirrored_indices(x.shape[axis], widest // 2), x.device)
        padded = result.index_select(axis, indices)
        taps = table.reshape(len(kernels), widest, *[1] * (x.ndim - 1))
        total = torch.zeros_like(result)
        for tap in range(widest):
            total += padded.narrow(axis, tap, x.shape[axis]) * taps[:, tap]
        result = total
    saturate_cast_torch(out, result)
