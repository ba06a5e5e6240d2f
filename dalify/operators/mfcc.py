"""Mel frequency cepstral coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, ShapeError
from dalify.base.wording import counted
from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.audio import cepstrum
from dalify.kernels.audio.axis_torch import transform_axis_torch
from dalify.registry import Spec, operator


@operator
def mfcc(
    x: Spec,
    /,
    *,
    axis: int = 0,
    dct_type: int = 2,
    lifter: float = 0.0,
    n_mfcc: int = 20,
    normalize: bool = False,
) -> Spec:
    """Compute the cosine transform of a (logarithmic) mel spectrogram along its frequencies: the cepstrum.

    Coefficient k of the default type is ``sum over n of x[n] * cos(pi / N * (n + 1/2) * k)``. The other types are
    defined as in scipy.fft.dct, without the factor 2.

    Args:
        x: float32 mel spectrogram, usually in decibels.
        axis: frequency axis, from 0.
        dct_type: 1, 2, 3 or 4.
        lifter: if not 0, coefficient k is multiplied by ``1 + lifter / 2 * sin(pi * (k + 1) / lifter)``.
        n_mfcc: number of coefficients, at most the number of frequencies.
        normalize: use an orthonormal basis; not with `dct_type` 1.

    Returns:
        Same layout, `n_mfcc` along the axis.

    Raises:
        ArgumentValueError: an argument is out of range.
        DTypeError: the data is not float32.
        IndexingError: an axis does not exist.
        ShapeError: a single frequency with `dct_type` 1.

    Example:
        >>> coefficients = fn.mfcc(fn.to_decibels(mel), n_mfcc=13, lifter=22.0)  # doctest: +SKIP
    """
    if dct_type not in (1, 2, 3, 4):
        raise ArgumentValueError(f"dct_type must be 1, 2, 3 or 4; got {dct_type}.")
    if dct_type == 1 and normalize:
        raise ArgumentValueError("dct_type 1 has no orthonormal basis: normalize must be False.")
    if n_mfcc < 1:
        raise ArgumentValueError(f"n_mfcc must be at least 1; got {n_mfcc}.")
    if not math.isfinite(lifter):
        raise ArgumentValueError(f"lifter must be finite; got {lifter:g}.")
    if axis < 0:
        raise ArgumentValueError(f"axis must not be negative; got {axis}.")
    if x.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(
            f"the spectrogram must be float32; got {x.dtype_text}.", hint="Convert it: fn.cast(x, dtype=types.FLOAT)."
        )
    if x.ndim is not None and axis >= x.ndim:
        raise IndexingError(f"axis {axis} does not exist: the data has {counted(x.ndim, 'dimension')}.")
    if x.shape is None:
        return x
    if dct_type == 1 and x.shape[axis] == 1:
        raise ShapeError("dct_type 1 requires at least two frequencies; got one.")
    return x.replace(shape=(*x.shape[:axis], min(n_mfcc, x.shape[axis]), *x.shape[axis + 1 :]))


def _matrix_of(dct_type: int, lifter: float, n_mfcc: int, normalize: bool) -> Callable[[int], np.ndarray]:
    """Return the function that returns the matrix for a number of frequencies."""
    return lambda size: cepstrum.cepstral_matrix(size, min(n_mfcc, size), dct_type, normalize, lifter)


@mfcc.cpu_samples
def _(out: Samples, x: Samples, *, axis: int, dct_type: int, lifter: float, n_mfcc: int, normalize: bool) -> None:
    cepstrum.transform_axis(out, x, axis, _matrix_of(dct_type, lifter, n_mfcc, normalize))


@mfcc.gpu_samples
def _(
    out: DeviceSamples, x: DeviceSamples, *, axis: int, dct_type: int, lifter: float, n_mfcc: int, normalize: bool
) -> None:
    transform_axis_torch(out, x, axis, _matrix_of(dct_type, lifter, n_mfcc, normalize))
