"""Convert magnitudes to decibels."""

from __future__ import annotations

from dalify.base.errors import DTypeError
from dalify.base.optional import torch
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.audio import decibels
from dalify.registry import Spec, operator


@operator
def to_decibels(x: Spec, /, *, cutoff_db: float = -200.0, multiplier: float = 10.0, reference: float = 0.0) -> Spec:
    """Convert magnitudes or powers to decibels: multiplier * log10(max(10**(cutoff_db / multiplier), x / reference)).

    Args:
        x: float32 magnitudes or powers of any shape; NaN and negative values give `cutoff_db`.
        cutoff_db: minimum result, in dB.
        multiplier: 10 for powers, 20 for magnitudes.
        reference: value of 0 dB; 0, the default, uses the maximum of each sample.

    Returns:
        Same shape and layout.

    Raises:
        ArgumentValueError: `reference` is negative, or an argument is not finite.
        DTypeError: the data is not float32.

    Example:
        >>> decibels = fn.to_decibels(mel, cutoff_db=-80.0)  # doctest: +SKIP
    """
    if x.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(
            f"magnitudes must be float32; got {x.dtype_text}.", hint="Convert it: fn.cast(x, dtype=types.FLOAT)."
        )
    decibels.check_decibels(multiplier, cutoff_db, reference)
    return x


@to_decibels.cpu_samples
def _(out: Samples, x: Samples, *, cutoff_db: float, multiplier: float, reference: float) -> None:
    decibels.to_decibels(out, x, multiplier, cutoff_db, reference or None)


@to_decibels.gpu_samples
@on_padded  # repeated edges do not change the maximum
def _(out: torch.Tensor, x: torch.Tensor, *, cutoff_db: float, multiplier: float, reference: float) -> None:
    decibels.to_decibels_torch(out, x, multiplier, cutoff_db, reference or None)
