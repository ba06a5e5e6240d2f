"""Blur images with a Gaussian."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.data import DALIDataType, Samples
from dalify.kernels.images.convolve import (
    complete_gaussians,
    convolve_samples,
    convolve_samples_torch,
    data_axes,
    gaussian_kernels,
)
from dalify.kernels.images.frames import leading_axes, per_axis_of_samples
from dalify.kernels.images.separable import SymmetricKernels
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
_MAX_WINDOW = 6001  # pixels, of the largest standard deviation


def _check(sigma: float, window_size: int) -> None:
    """Raise an ArgumentValueError unless there is a Gaussian with these arguments."""
    if sigma < 0:
        raise ArgumentValueError(f"sigma must not be negative; got {sigma:g}.")
    if not sigma <= _MAX_SIGMA:
        raise ArgumentValueError(f"sigma must be from 0 to {_MAX_SIGMA} pixels; got {sigma:g}.")
    if sigma == 0 and window_size == 0:
        raise ArgumentValueError(
            "sigma and window_size must not both be 0.", hint="For example gaussian_blur(x, sigma=1.0)."
        )
    if window_size and (window_size < 0 or window_size % 2 == 0):
        raise ArgumentValueError(f"window_size must be an odd positive number of pixels; got {window_size}.")
    if window_size > _MAX_WINDOW:
        raise ArgumentValueError(f"window_size must be at most {_MAX_WINDOW}; got {window_size}.")


# Constant standard deviations and window sizes are the same for every chunk.
@lru_cache(16)
def _kernels(sigmas: bytes, windows: bytes, axes: int) -> SymmetricKernels:
    """Return the kernels of each frame and axis from the contents of float32 and int32 arrays [frames, axes].

    Raises:
        ArgumentValueError: with the index of the frame.
    """
    given_sigmas, given_windows = np.frombuffer(sigmas, np.float32), np.frombuffer(windows, np.int32)
    found = np.empty(len(given_sigmas)), np.empty(len(given_sigmas), np.int64)
    refused = complete_gaussians(*found, given_sigmas, given_windows, _MAX_SIGMA, _MAX_WINDOW)
    if refused >= 0:
        try:
            _check(float(given_sigmas[refused]), int(given_windows[refused]))
        except ArgumentValueError as error:
            error.sample = refused // axes
            raise
    return gaussian_kernels(*(values.reshape(-1, axes) for values in found))


@gaussian_blur.cpu_samples
@gaussian_blur.gpu_samples
def _(out: AnySamples, x: AnySamples, *, sigma: Vectors, window_size: Vectors, spec: Spec) -> None:
    layout = spec.layout or ""
    first, axes = data_axes(layout, spec.ndim or 0)
    sigmas = per_axis_of_samples(sigma, x, layout, "sigma", axes)
    windows = per_axis_of_samples(window_size, x, layout, "window_size", axes)
    leading = leading_axes(layout)
    source, owners = x.folded(leading)
    try:
        kernels = _kernels(sigmas.tobytes(), windows.tobytes(), axes)
    except ArgumentValueError as error:
        error.sample = error.sample if error.sample is None or owners is None else int(owners[error.sample])
        raise
    is_on_cpu = isinstance(x, Samples)
    convolve: Any = convolve_samples if is_on_cpu else convolve_samples_torch
    convolve(out.folded(leading)[0], source, kernels if is_on_cpu else kernels.arrays, first - leading)
