"""Blur images with a Gaussian."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.data import DALIDataType, Samples
from dalify.kernels.images.convolve import (
    convolve_samples,
    convolve_samples_torch,
    data_axes,
    gaussian_kernels,
    gaussian_sigma,
    gaussian_window,
)
from dalify.kernels.images.frames import leading_axes, per_axis_of_samples
from dalify.registry import AnySamples, PerSampleOrFrame, Spec, Vectors, operator


@operator
def gaussian_blur(
    x: Spec,
    /,
    *,
    dtype: DALIDataType | None = None,
    sigma: PerSampleOrFrame[float | list[float]] = 0.0,
    window_size: PerSampleOrFrame[int | list[int]] = 0,
) -> Spec:
    """Blur images, sequences or volumes with a Gaussian; edges are mirrored without repeating the edge pixel.

    Without `window_size` it is ``2 * ceil(3 * sigma) + 1``; without `sigma` it is ``(radius - 1) * 0.3 + 0.8`` with
    ``radius = (window_size - 1) / 2`` (DALI's documentation of fn.gaussian_blur). Sums are in float32 and rounded once.

    Args:
        x: 1 to 3 data axes, C first or last, F first; for instance HWC, CHW, FHWC, DHWC, HW. Any numeric type.
        dtype: the input's type (default) or FLOAT.
        sigma: standard deviation in pixels; 0: computed from `window_size`; one value or one per data axis, outermost
            first. Can be per frame.
        window_size: odd number of pixels; 0: computed from `sigma`; one value or one per data axis. Can be per frame.

    Returns:
        Same shape and layout.

    Raises:
        LayoutError: C is between the data axes.
        DTypeError: `dtype` is neither the input's type nor FLOAT.
        ArgumentValueError: both are 0, sigma is negative, or the window is even.
        ShapeError: neither one value nor one per axis.

    Example:
        >>> images = fn.gaussian_blur(images, sigma=1.5)  # doctest: +SKIP
    """
    data_axes(x.layout or "", x.ndim or 0)
    if dtype not in (None, x.dtype, DALIDataType.FLOAT):
        raise DTypeError(
            f"dtype must be types.FLOAT, the type of the input ({x.dtype_text}), or omitted; got {dtype.text}."
        )
    return x.replace(dtype=x.dtype if dtype is None else dtype)


_MAX_SIGMA = 1000


def _completed(sigma: float, window_size: int) -> tuple[float, int]:
    """Return sigma and window size; the one that is 0 is computed from the other."""
    if sigma < 0:
        raise ArgumentValueError(f"sigma must not be negative; got {sigma:g}.")
    if not sigma <= _MAX_SIGMA:
        raise ArgumentValueError(f"sigma must be at most {_MAX_SIGMA} pixels; got {sigma:g}.")
    if sigma == 0 and window_size == 0:
        raise ArgumentValueError(
            "sigma and window_size must not both be 0.", hint="For example gaussian_blur(x, sigma=1.0)."
        )
    if window_size and (window_size < 0 or window_size % 2 == 0):
        raise ArgumentValueError(f"window_size must be an odd positive number of pixels; got {window_size}.")
    if window_size > gaussian_window(_MAX_SIGMA):
        raise ArgumentValueError(f"window_size must be at most {gaussian_window(_MAX_SIGMA)}; got {window_size}.")
    return sigma or gaussian_sigma(window_size), window_size or gaussian_window(sigma)


# Constant standard deviations and window sizes are the same for every chunk.
@lru_cache(16)
def _kernels(sigmas: bytes, windows: bytes, axes: int) -> list[list[np.ndarray]]:
    """Return the weights of each frame and axis, [frames, axes], from the contents of float32 and int32 arrays."""
    values = np.frombuffer(sigmas, np.float32).tolist(), np.frombuffer(windows, np.int32).tolist()
    pairs: dict[tuple[float, int], tuple[float, int]] = {}
    for place, pair in enumerate(zip(*values, strict=True)):
        if pair not in pairs:
            try:
                pairs[pair] = _completed(*pair)
            except ArgumentValueError as error:
                error.sample = place // axes
                raise
    weights = dict(zip(pairs, gaussian_kernels([*pairs.values()]), strict=True))
    found = [weights[pair] for pair in zip(*values, strict=True)]
    return [found[place : place + axes] for place in range(0, len(found), axes)]


@gaussian_blur.cpu_samples
@gaussian_blur.gpu_samples
def _(out: AnySamples, x: AnySamples, *, sigma: Vectors, window_size: Vectors, spec: Spec) -> None:
    layout = spec.layout or ""
    first, axes = data_axes(layout, spec.ndim or 0)
    sigmas = per_axis_of_samples(sigma, x, layout, "sigma", axes)
    windows = per_axis_of_samples(window_size, x, layout, "window_size", axes)
    leading = leading_axes(layout)
    source, owners = x.folded(leading)
    convolve: Any = convolve_samples if isinstance(x, Samples) else convolve_samples_torch
    try:
        kernels = _kernels(sigmas.tobytes(), windows.tobytes(), axes)
    except ArgumentValueError as error:
        error.sample = error.sample if error.sample is None or owners is None else int(owners[error.sample])
        raise
    convolve(out.folded(leading)[0], source, kernels, first - leading)
