"""Pre-emphasis: raise the high frequencies of speech."""

from __future__ import annotations

from dalify.base.errors import ArgumentValueError, DTypeError, option_error_text
from dalify.data.dtypes import DALIDataType
from dalify.kernels import preemphasis
from dalify.registry import PerSample, Spec, operator

_OTHER_TYPES = (DALIDataType.FLOAT16, DALIDataType.BOOL)


@operator
def preemphasis_filter(
    x: Spec,
    /,
    *,
    border: str = "clamp",
    dtype: DALIDataType = DALIDataType.FLOAT,
    preemph_coeff: PerSample[float] = 0.97,
) -> Spec:
    """Subtract from each sample a part of the one before it: ``y[t] = x[t] - preemph_coeff * x[t - 1]``.

    Args:
        x: sound of any number type, but FLOAT16 and BOOL; data of several dimensions are one row of samples.
        border: what stands before the first sample: "zero", "clamp" (the first sample itself) or "reflect" (the
            second one; the first where there is no second).
        dtype: of the result; integers are rounded and saturated.
        preemph_coeff: 0 changes nothing.

    Returns:
        Same shape and layout.

    Raises:
        ArgumentValueError: an unknown border.
        DTypeError: FLOAT16 or BOOL, of data or result.

    Example:
        >>> sound = fn.preemphasis_filter(sound, preemph_coeff=0.97)  # doctest: +SKIP
    """
    if border not in preemphasis.BORDERS:
        raise ArgumentValueError(option_error_text("border", border, preemphasis.BORDERS))
    for what, kind in (("dtype", dtype), ("the sound", x.dtype)):
        if kind in _OTHER_TYPES:
            raise DTypeError(f"{what} cannot be {kind!s}.", hint="types.FLOAT is what the next operators take.")
    return x.replace(dtype=dtype)


@preemphasis_filter.cpu_samples
def _(out, x, *, border, preemph_coeff):
    preemphasis.preemphasis(out, x, preemph_coeff, border)


@preemphasis_filter.gpu
def _(out, x, *, border, preemph_coeff):
    preemphasis.preemphasis_torch(out.reshape(len(x), -1), x.reshape(len(x), -1), preemph_coeff, border)
