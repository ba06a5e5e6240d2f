"""Find the region of audio between leading and trailing silence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from dalify.base.wording import counted
from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.audio.loudness import nonsilent_regions
from dalify.registry import Parameters, Spec, operator

_OTHER_TYPES = (DALIDataType.BOOL, DALIDataType.FLOAT16, DALIDataType.FLOAT64)


@dataclass(slots=True)
class Silence(Parameters):
    """The definition of silence.

    Attributes:
        cutoff_db: threshold in dB; windows below it are silent.
        reference_power: power of 0 dB; 0, the default, uses the power of the loudest window.
        reset_interval: number of samples after which the sliding sum of floats is recomputed, a multiple of
            `window_length`; -1: never. Ignored for integers.
        window_length: number of samples of a window; shorter audio is one window.
    """

    cutoff_db: float = -60.0
    reference_power: float = 0.0
    reset_interval: int = 8192
    window_length: int = 2048


@operator(alphabetical=True, outputs=2)
def nonsilent_region(x: Spec, /, *, silence: Silence) -> tuple[Spec, Spec]:
    """Find the non-silent region of audio: from the first to the last window above a threshold.

    The power of a window is the mean of the squares of its samples. It is not silent if
    ``10 * log10(power / reference_power)`` is at least `cutoff_db`.

    Args:
        x: mono audio, ``[samples]``, of FLOAT or any integer type.

    Returns:
        index of the first non-silent sample, and the length of the region, both int32; 0 and 0 for silent or empty
        audio.

    Raises:
        ArgumentValueError: an argument is out of range.
        DTypeError: BOOL, FLOAT16 or FLOAT64.
        ShapeError: the audio has more than one axis.

    Example:
        >>> begin, length = fn.nonsilent_region(audio, cutoff_db=-40.0)  # doctest: +SKIP
        >>> audio = fn.slice(audio, begin, length, axes=[0])  # doctest: +SKIP
    """
    if silence.window_length < 1:
        raise ArgumentValueError(f"window_length must be at least 1; got {silence.window_length}.")
    if not 0 <= silence.reference_power < math.inf:
        raise ArgumentValueError(f"reference_power must be finite and not negative; got {silence.reference_power:g}.")
    if math.isnan(silence.cutoff_db):
        raise ArgumentValueError("cutoff_db must be a number; got NaN.")
    is_float = x.dtype in (None, DALIDataType.FLOAT)
    if silence.reset_interval != -1 and (
        silence.reset_interval < 1 or (is_float and silence.reset_interval % silence.window_length)
    ):
        raise ArgumentValueError(
            f"reset_interval must be -1 or a positive multiple of window_length, {silence.window_length}; "
            f"got {silence.reset_interval}."
        )
    if x.dtype in _OTHER_TYPES:
        raise DTypeError(
            f"audio must be float32 or integers; got {x.dtype_text}.", hint="Convert it: fn.cast(x, dtype=types.FLOAT)."
        )
    if x.ndim not in (None, 1):
        raise ShapeError(
            f"audio must have one axis, of samples; got {counted(x.ndim, 'axis')}.",
            hint="Use fn.decoders.audio(…, downmix=True), or drop the axis with fn.squeeze(x, axes=[1]).",
        )
    result = Spec(DALIDataType.INT32, 0, "", (), device=x.device)
    return result, result


@nonsilent_region.cpu_samples
def _(begin: Samples, length: Samples, x: Samples, *, silence: Silence) -> None:
    assert begin.dense is not None, "dalify bug: numbers that are not in one array"
    assert length.dense is not None, "dalify bug: numbers that are not in one array"
    _fill_regions(begin.dense, length.dense, x, silence)


def _fill_regions(begins: np.ndarray, lengths: np.ndarray, x: Samples, silence: Silence) -> None:
    nonsilent_regions(
        begins,
        lengths,
        x,
        cutoff_db=silence.cutoff_db,
        reference_power=silence.reference_power,
        reset_interval=silence.reset_interval,
        window_length=silence.window_length,
    )


@nonsilent_region.gpu_samples
def _(begin: DeviceSamples, length: DeviceSamples, x: DeviceSamples, *, silence: Silence) -> None:
    # On the CPU: the rounding of the sliding sum depends on the order of the additions, and the results must be the
    # same on both devices. The host waits once for a chunk.
    block = x.block.cpu().numpy()
    addresses = x.offsets * block.itemsize + block.__array_interface__["data"][0]
    regions = np.empty((2, len(x)), np.int32)
    _fill_regions(regions[0], regions[1], Samples(addresses, x.shapes, block.dtype, block), silence)
    found = uploaded(regions, x.device)
    begin.block.copy_(found[0])
    length.block.copy_(found[1])
