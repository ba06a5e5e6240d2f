"""The Laplacian: the sum of second derivatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.data.spec import Spec
from dalify.kernels.images.convolve import data_axes, sum_convolutions, sum_convolutions_torch
from dalify.kernels.images.frames import folded_frames, frame_count
from dalify.registry import AnySamples, PerSample, Vectors, operator

_MAX_WINDOW = 31


@operator
def laplacian(
    x: Spec,
    /,
    *,
    dtype: DALIDataType | None = None,
    normalized_kernel: bool = False,
    scale: PerSample[float | list[float]] | None = None,
    smoothing_size: PerSample[int | list[int]] | None = None,
    window_size: PerSample[int | list[int]] = 3,
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
        raise DTypeError(f"dtype must be the type of the input ({x.dtype!s}), FLOAT, or omitted; got {dtype!s}.")
    if normalized_kernel and scale is not None:
        raise ArgumentValueError("specify either scale or normalized_kernel=True.")
    return x.replace(dtype=x.dtype if dtype is None else dtype)


@lru_cache(maxsize=64)
def _binomial(size: int) -> np.ndarray:
    return np.array([math.comb(size - 1, k) for k in range(size)], np.float64)


@lru_cache(maxsize=256)
def _kernel(size: int, is_derivative: bool, factor: float) -> np.ndarray:
    """Return a kernel that smooths or derives, float32 [size]."""
    weights = np.convolve(_binomial(size - 2), [1, -2, 1]) * factor if is_derivative else _binomial(size)
    return weights.astype(np.float32)


def _check_size(size: int, minimum: int, name: str) -> int:
    if size % 2 == 0 or not minimum <= size <= _MAX_WINDOW:
        raise ArgumentValueError(f"{name} must be odd and between {minimum} and {_MAX_WINDOW}; got {size}.")
    return size


def _rows(values: Any, frames: Sequence[int], axes: int, name: str) -> list[list[Any]]:
    """Return an argument as one list per frame of all samples, a value for each axis."""
    rows: list[np.ndarray] = []
    for n, (given, count) in enumerate(zip(values, frames, strict=True)):
        if given.shape[-1] not in (1, axes) or (given.ndim > 1 and len(given) != count):
            error = ShapeError(
                f"{name} must have one value or one for each of the {axes} data axes; got {given.shape[-1]}."
            )
            error.sample = n
            raise error
        rows.append(np.broadcast_to(given, (count, axes)))
    return np.concatenate(rows).tolist()


def _terms(
    frames: Sequence[int], axes: int, scale: Any, smoothing_size: Any, window_size: Any, normalized_kernel: bool
) -> list[list[list[np.ndarray]]]:
    """Return, for each derivative, the kernels of all frames.

    Args:
        frames: number of frames of each sample.
        axes: number of data axes.
        scale: argument of the operator, as the others.
        smoothing_size: argument.
        window_size: argument.
        normalized_kernel: argument.
    """
    windows = _rows(window_size, frames, axes, "window_size")
    given = smoothing_size is not None
    smooth = _rows(smoothing_size, frames, axes, "smoothing_size") if given else windows
    factors = _rows(np.ones((len(frames), 1)) if scale is None else scale, frames, axes, "scale")
    terms: list[list[list[np.ndarray]]] = []
    for axis in range(axes):
        term: list[list[np.ndarray]] = []
        for window, smoothing, factor in zip(windows, smooth, factors, strict=True):
            size = _check_size(window[axis], 3, "window_size")
            sizes = [_check_size(smoothing[other], 1, "smoothing_size") if given else size for other in range(axes)]
            sizes[axis] = size
            amount = 2.0 ** (axes + 2 - sum(sizes)) if normalized_kernel else factor[axis]
            term.append([_kernel(length, n == axis, amount if n == axis else 1.0) for n, length in enumerate(sizes)])
        terms.append(term)
    return terms


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
    frames = [frame_count(layout, shape) for shape in x.shapes.tolist()]
    terms = _terms(frames, axes, scale, smoothing_size, window_size, normalized_kernel)
    source, target = folded_frames(x, layout), folded_frames(out, layout)
    fill: Any = sum_convolutions if isinstance(x, Samples) else sum_convolutions_torch
    fill(target, source, terms, first - layout.startswith("F"))
