"""Where a recording begins and ends, between the silences."""

from __future__ import annotations

import math

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.kernels.loudness import nonsilent_regions
from dalify.registry import Spec, operator

_OTHER_TYPES = (DALIDataType.BOOL, DALIDataType.FLOAT16, DALIDataType.FLOAT64)


@operator(outputs=2)
def nonsilent_region(
    x: Spec,
    /,
    *,
    cutoff_db: float = -60.0,
    reference_power: float = 0.0,
    reset_interval: int = 8192,
    window_length: int = 2048,
) -> tuple[Spec, Spec]:
    """Find the part of a recording that is not silent: from the first to the last window that is loud enough.

    The power of a window is the mean of the squares of its samples. It is loud enough where
    ``10 * log10(power / reference_power)`` is at least `cutoff_db`.

    Args:
        x: sound of one channel, ``[samples]``, of FLOAT or any integer type.
        cutoff_db: what is quieter is silence.
        reference_power: what is 0 dB; 0, the default, takes the power of the loudest window.
        reset_interval: samples after which the sliding sum of floats is computed anew, a multiple of
            `window_length`; -1 for never. Integers need none.
        window_length: samples of a window; a shorter recording is one window.

    Returns:
        index of the first sample that is not silent, and the number of samples from there, both int32. All silent or
        empty: 0 and 0.

    Raises:
        ArgumentValueError: an argument out of its range.
        DTypeError: BOOL, FLOAT16 or FLOAT64.
        ShapeError: the sound has several channels.

    Example:
        >>> begin, length = fn.nonsilent_region(sound, cutoff_db=-40.0)  # doctest: +SKIP
        >>> sound = fn.slice(sound, begin, length, axes=[0])  # doctest: +SKIP
    """
    if window_length < 1:
        raise ArgumentValueError(f"window_length must be at least 1; got {window_length}.")
    if not 0 <= reference_power < math.inf:
        raise ArgumentValueError(
            f"reference_power must be positive, or 0 for the loudest window; got {reference_power:g}."
        )
    if math.isnan(cutoff_db):
        raise ArgumentValueError("cutoff_db must be a number; got NaN.")
    is_float = x.dtype in (None, DALIDataType.FLOAT)
    if reset_interval != -1 and (reset_interval < 1 or (is_float and reset_interval % window_length)):
        raise ArgumentValueError(
            f"reset_interval must be -1 or a positive multiple of window_length, {window_length}; got {reset_interval}."
        )
    if x.dtype in _OTHER_TYPES:
        raise DTypeError(f"the sound must be FLOAT or integers; got {x.dtype!s}.", hint="fn.cast(x, dtype=types.FLOAT)")
    if x.ndim not in (None, 1):
        raise ShapeError(
            f"the sound must have one axis, of samples; it has {x.ndim}.",
            hint="Mix its channels: fn.decoders.audio(…, downmix=True); or drop the axis: fn.squeeze(x, axes=[1]).",
        )
    result = Spec(DALIDataType.INT32, 0, "", (), device=x.device)
    return result, result


@nonsilent_region.cpu_samples
def _(begin, length, x, *, cutoff_db, reference_power, reset_interval, window_length):
    begin.dense[...], length.dense[...] = nonsilent_regions(
        x,
        cutoff_db=cutoff_db,
        reference_power=reference_power,
        reset_interval=reset_interval,
        window_length=window_length,
    )


@nonsilent_region.gpu
def _(begin, length, x, *, cutoff_db, reference_power, reset_interval, window_length):
    # On the host, as in DALI: a sliding sum has its order, and the two numbers have to be the same on both devices.
    regions = nonsilent_regions(
        Samples.of_dense(x.cpu().contiguous().numpy()),
        cutoff_db=cutoff_db,
        reference_power=reference_power,
        reset_interval=reset_interval,
        window_length=window_length,
    )
    for target, values in zip((begin, length), regions, strict=True):
        target.copy_(torch.from_numpy(values))
