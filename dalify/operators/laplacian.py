"""The Laplacian: the sum of second derivatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.data import DALIDataType, Samples, Spec
from dalify.kernels.images.convolve import data_axes, sum_convolutions, sum_convolutions_torch
from dalify.kernels.images.frames import leading_axes, per_axis_of_samples
from dalify.kernels.images.separable import SymmetricKernels
from dalify.registry import AnySamples, PerSampleOrFrame, Vectors, operator

_MAX_WINDOW = 31


@operator
def laplacian(
    x: Spec,
    /,
    *,
    dtype: DALIDataType | None = None,
    normalized_kernel: bool = False,
    scale: PerSampleOrFrame[float | list[float]] | None = None,
    smoothing_size: PerSampleOrFrame[int | list[int]] | None = None,
    window_size: PerSampleOrFrame[int | list[int]] = 3,
) -> Spec:
    """Compute the Laplacian: the sum of the second derivatives along all data axes.

    Each derivative is a separable filter: 1, -2, 1, smoothed by binomial weights up to `window_size`, along its
    axis, and binomial weights of `smoothing_size` along the others. Edges are mirrored without repeating the edge
    pixel; sums are in float32 and rounded once.

    Args:
        x: 1 to 3 data axes, C first or last, F first; any numeric type.
        dtype: the input's type (default) or FLOAT.
        normalized_kernel: scale each derivative by ``2 ** (axes + 2 - sum of its window sizes)``; not with `scale`.
        scale: multiplier of the derivatives, by default 1; one value or one per data axis, outermost first. Can be per
            frame.
        smoothing_size: odd, 1 to 31, 1 for no smoothing; by default the `window_size` of the derivative; one value or
            more, as `scale`.
        window_size: odd, 3 to 31; one value or more, as `scale`.

    Returns:
        Same shape and layout.

    Raises:
        LayoutError: C is between the data axes.
        DTypeError: `dtype` is neither the input's type nor FLOAT.
        ArgumentValueError: a window size out of range, or `scale` together with `normalized_kernel`.
        ShapeError: neither one value nor one per axis.

    Example:
        >>> edges = fn.laplacian(images, window_size=5, dtype=types.FLOAT)  # doctest: +SKIP
    """
    data_axes(x.layout or "", x.ndim or 0)
    if dtype not in (None, x.dtype, DALIDataType.FLOAT):
        raise DTypeError(
            f"dtype must be types.FLOAT, the type of the input ({x.dtype_text}), or omitted; got {dtype.text}."
        )
    if normalized_kernel and scale is not None:
        raise ArgumentValueError("specify either scale or normalized_kernel=True.")
    return x.replace(dtype=x.dtype if dtype is None else dtype)


@lru_cache(maxsize=64)
def _binomial(size: int) -> np.ndarray:
    return np.array([math.comb(size - 1, k) for k in range(size)], np.float64)


@lru_cache(maxsize=256)
def _kernel(size: int, is_derivative: bool, factor: float) -> np.ndarray:
    """Return a kernel that smooths or differentiates, float32 [size]."""
    weights = np.convolve(_binomial(size - 2), [1, -2, 1]) * factor if is_derivative else _binomial(size)
    return weights.astype(np.float32)


def _check_size(size: int, minimum: int, name: str) -> int:
    if size % 2 == 0 or not minimum <= size <= _MAX_WINDOW:
        raise ArgumentValueError(f"{name} must be odd and between {minimum} and {_MAX_WINDOW}; got {size}.")
    return size


def _kernels(
    windows: Sequence[int], smoothing: Sequence[int], factors: Sequence[float], normalized_kernel: bool
) -> list[list[np.ndarray]]:
    """Return, for each derivative, the kernels of a frame.

    Args:
        windows: size of each derivative.
        smoothing: sizes across the derivatives; empty: the sizes of the derivatives.
        factors: factor of each derivative.
        normalized_kernel: argument of the operator.
    """
    axes = len(windows)
    terms: list[list[np.ndarray]] = []
    for axis, window in enumerate(windows):
        size = _check_size(window, 3, "window_size")
        sizes = [_check_size(other, 1, "smoothing_size") for other in smoothing] or [size] * axes
        sizes[axis] = size
        amount = 2.0 ** (axes + 2 - sum(sizes)) if normalized_kernel else factors[axis]
        terms.append([_kernel(length, n == axis, amount if n == axis else 1.0) for n, length in enumerate(sizes)])
    return terms


# Constant arguments are the same for every chunk.
@lru_cache(16)
def _terms(
    windows: bytes, smoothing: bytes, scales: bytes, axes: int, normalized_kernel: bool
) -> list[SymmetricKernels]:
    """Return the kernels of each derivative.

    Args:
        windows: sizes of the derivatives, contents of an int32 array [frames, axes].
        smoothing: sizes across the derivatives, the same; empty without.
        scales: factors of the derivatives, contents of a float32 array [frames, axes]; empty without.
        axes: number of filtered axes.
        normalized_kernel: argument of the operator.

    Raises:
        ArgumentValueError: a size is wrong. Its `sample` is the index of the frame.
    """
    of_frames = np.frombuffer(windows, np.int32).reshape(-1, axes).tolist()
    sizes: list[list[int]] = [[]] * len(of_frames)
    factors = [[1.0] * axes] * len(of_frames)
    if smoothing:
        sizes = np.frombuffer(smoothing, np.int32).reshape(-1, axes).tolist()
    if scales:
        factors = np.frombuffer(scales, np.float32).reshape(-1, axes).tolist()
    found: dict[str, list[list[np.ndarray]]] = {}
    kernels: list[list[list[np.ndarray]]] = []
    for n, row in enumerate(zip(of_frames, sizes, factors, strict=True)):
        key = str(row)
        if key not in found:
            try:
                found[key] = _kernels(*row, normalized_kernel)
            except ArgumentValueError as error:
                error.sample = n
                raise
        kernels.append(found[key])
    return [SymmetricKernels.of_arrays(of_term) for of_term in zip(*kernels, strict=True)]


@laplacian.cpu_samples
@laplacian.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
    *,
    scale: Vectors | None,
    smoothing_size: Vectors | None,
    window_size: Vectors,
    normalized_kernel: bool,
    spec: Spec,
) -> None:
    layout = spec.layout or ""
    first, axes = data_axes(layout, x.ndim)
    leading = leading_axes(layout)
    source, owners = x.folded(leading)

    def content(values: Vectors | None, name: str) -> bytes:
        return b"" if values is None else per_axis_of_samples(values, x, layout, name, axes).tobytes()

    windows = content(window_size, "window_size")
    scales, smoothing = content(scale, "scale"), content(smoothing_size, "smoothing_size")
    try:
        terms = _terms(windows, smoothing, scales, axes, normalized_kernel)
    except ArgumentValueError as error:
        error.sample = error.sample if owners is None else int(owners[error.sample])
        raise
    is_on_cpu = isinstance(x, Samples)
    fill: Any = sum_convolutions if is_on_cpu else sum_convolutions_torch
    fill(out.folded(leading)[0], source, terms if is_on_cpu else [each.arrays for each in terms], first - leading)
