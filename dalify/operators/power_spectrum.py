"""Power spectrum of entire signals."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, ShapeError
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.audio import spectrum
from dalify.registry import Spec, operator


@operator
def power_spectrum(x: Spec, /, *, axis: int = -1, nfft: int | None = None, power: int = 2) -> Spec:
    """Compute spectra of signals along an axis: ``|sum over n of x[n] * exp(-2 pi i k n / nfft)|**power`` in bin k.

    Args:
        x: float32 signals of any number of dimensions.
        axis: axis of the samples; -1: the last one. Other negative values raise an error, unlike in DALI, which
            treats them as -1.
        nfft: length of the transform; longer signals are truncated, shorter ones zero-padded. By default, and for
            values below 1, the length of the signal.
        power: 2 for squared magnitudes, 1 for magnitudes.

    Returns:
        Same layout, ``nfft // 2 + 1`` bins along the axis.

    Raises:
        ArgumentValueError: `power` is neither 1 nor 2, or `axis` is below -1.
        DTypeError: the signals are not float32.
        IndexingError: an axis does not exist.
        ShapeError: signals without samples.

    Example:
        >>> power = fn.power_spectrum(frames, nfft=512)  # doctest: +SKIP
    """
    if power not in (1, 2):
        raise ArgumentValueError(f"power must be 1 (magnitude) or 2 (its square); got {power}.")
    if axis < -1:
        raise ArgumentValueError(f"axis must be -1 (the last one) or not negative; got {axis}.")
    if x.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(
            f"signals must be float32; got {x.dtype_text}.", hint="Convert it: fn.cast(signal, dtype=types.FLOAT)."
        )
    if x.ndim is not None and axis >= x.ndim:
        raise IndexingError(f"axis {axis} does not exist: the data has {counted(x.ndim, 'dimension')}.")
    if x.ndim == 0:
        raise ShapeError("a signal must have an axis of samples; got scalars.")
    if x.shape is None:
        return x
    chosen = len(x.shape) - 1 if axis < 0 else axis
    length = _length(nfft, x.shape[chosen])
    if x.shape[chosen] == 0:
        raise ShapeError("the signals must have at least one sample.")
    return x.replace(shape=(*x.shape[:chosen], length // 2 + 1, *x.shape[chosen + 1 :]))


def _length(nfft: int | None, samples: int) -> int:
    return samples if nfft is None or nfft < 1 else nfft


@power_spectrum.cpu_samples
def _(out: Samples, x: Samples, *, axis: int, nfft: int | None, power: int) -> None:
    length = None if nfft is None or nfft < 1 else nfft
    spectrum.power_spectrum(out, x, x.ndim - 1 if axis < 0 else axis, length=length, power=power)


@power_spectrum.gpu_samples
@on_padded
def _(out: torch.Tensor, x: torch.Tensor, *, axis: int, nfft: int | None, power: int, extents: np.ndarray) -> None:
    chosen = x.ndim - 1 if axis < 0 else axis + 1
    length = None if nfft is None or nfft < 1 else nfft
    spectrum.power_spectrum_torch(out, x, chosen, length=length, power=power, extents=extents)
