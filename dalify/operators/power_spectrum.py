"""Power spectrum of whole signals."""

from __future__ import annotations

from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.kernels import spectrum
from dalify.registry import Spec, operator


@operator
def power_spectrum(x: Spec, /, *, axis: int = -1, nfft: int | None = None, power: int = 2) -> Spec:
    """Take the spectrum of signals along an axis: ``|sum over n of x[n] * exp(-2 pi i k n / nfft)|**power`` in bin k.

    Args:
        x: float32 signals of any number of dimensions.
        axis: of the signals; -1 is the last one. (DALI takes any other negative axis for the last one, too; here they
            are refused.)
        nfft: length of the transform; longer signals are cut off, shorter ones filled up with zeros. The default, and
            any number below 1, is the length of the signal.
        power: 2 for squared magnitudes, 1 for magnitudes.

    Returns:
        Same layout, ``nfft // 2 + 1`` bins along the axis.

    Raises:
        ArgumentValueError: another power, or an axis below -1.
        DTypeError: the signals are not float32.
        IndexingError: there is no such axis.
        ShapeError: signals without samples.

    Example:
        >>> power = fn.power_spectrum(frames, nfft=512)  # doctest: +SKIP
    """
    if power not in (1, 2):
        raise ArgumentValueError(f"power must be 1 (magnitude) or 2 (its square); got {power}.")
    if axis < -1:
        raise ArgumentValueError(f"axis must be -1 for the last one, or count from 0; got {axis}.")
    if x.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(f"signals must be float32; got {x.dtype!s}.", hint="fn.cast(signal, dtype=types.FLOAT)")
    if x.ndim is not None and axis >= x.ndim:
        raise IndexingError(f"axis {axis} does not exist: the data have {x.ndim} dimensions.")
    if x.ndim == 0:
        raise ShapeError("a signal needs an axis of samples; got single numbers.")
    if x.shape is None:
        return x
    chosen = len(x.shape) - 1 if axis < 0 else axis
    length = _length(nfft, x.shape[chosen])
    if x.shape[chosen] == 0:
        raise ShapeError("the signals have no samples: they have no spectrum.")
    return x.replace(shape=(*x.shape[:chosen], length // 2 + 1, *x.shape[chosen + 1 :]))


def _length(nfft: int | None, samples: int) -> int:
    return samples if nfft is None or nfft < 1 else nfft


@power_spectrum.cpu
def _(out, x, *, axis, nfft, power):
    chosen = x.ndim - 1 if axis < 0 else axis + 1
    spectrum.power_spectrum(out, x, chosen, length=_length(nfft, x.shape[chosen]), power=power)


@power_spectrum.gpu
def _(out, x, *, axis, nfft, power):
    chosen = x.ndim - 1 if axis < 0 else axis + 1
    spectrum.power_spectrum_torch(out, x, chosen, length=_length(nfft, x.shape[chosen]), power=power)
