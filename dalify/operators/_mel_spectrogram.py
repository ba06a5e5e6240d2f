"""Compute spectra and sum them in bands, without storing them; convert the sums to decibels and normalize them.

The pass ``fuse`` inserts it; users do not call it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.data import Batch
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.kernels.arrays.axes import chosen_axes
from dalify.kernels.arrays.normalize import normalize
from dalify.kernels.audio.decibels import to_decibels
from dalify.kernels.audio.spectrum import spectrogram
from dalify.parameter_groups.spectra import MelFilters, Windows
from dalify.registry import Spec, operator

_OF_DECIBELS = ("cutoff_db", "multiplier", "reference")
_OF_NORMALIZATION = ("axes", "axis_names", "ddof", "epsilon", "scale", "shift")


@operator
def _mel_spectrogram(
    x: Spec,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    cutoff_db: float = -200.0,
    ddof: int = 0,
    epsilon: float = 0.0,
    filters: MelFilters,
    multiplier: float | None = None,
    reference: float = 0.0,
    scale: float = 1.0,
    shift: float = 0.0,
    windows: Windows,
) -> Spec:
    """Compute spectra and sum them in bands; convert the sums to decibels and normalize them.

    Args:
        x: see ``spectrogram``.
        axes: see ``normalize``; without axes and their names, nothing is normalized.
        axis_names: see ``normalize``.
        cutoff_db: see ``to_decibels``.
        ddof: see ``normalize``.
        epsilon: see ``normalize``.
        multiplier: see ``to_decibels``; None for no conversion.
        reference: see ``to_decibels``.
        scale: see ``normalize``.
        shift: see ``normalize``.

    Returns:
        float32, bands and windows in the order of `layout`.
    """
    return filters.bands(windows.spectra(x))


@_mel_spectrogram.geometry
def _(x: Batch, *, windows: Windows, filters: MelFilters) -> dict[str, Any]:
    shapes = windows.shapes(x.shape_array(), filters.nfilter)
    return {} if shapes is None else {"out_shapes": shapes}


@_mel_spectrogram.cpu_samples
def _(
    out: Samples,
    x: Samples,
    *,
    axes: tuple[int, ...] | None,
    axis_names: str | None,
    cutoff_db: float,
    ddof: int,
    epsilon: float,
    filters: MelFilters,
    multiplier: float | None,
    out_spec: Spec,
    reference: float,
    scale: float,
    shift: float,
    windows: Windows,
) -> None:
    is_normalized = axes is not None or axis_names is not None
    chosen = chosen_axes(out_spec, axes, axis_names)  # first: after a kernel, code in Python is not in the CPU cache
    spectrogram(out, x, **windows.options, bank=filters.bank(windows.length // 2 + 1))
    if multiplier is not None:
        to_decibels(out, out, multiplier, cutoff_db, reference or None)
    if is_normalized:
        normalize(out, out, None, None, chosen, ddof=ddof, epsilon=epsilon, scale=scale, shift=shift)


@_mel_spectrogram.before("to_decibels", "merges", into="_mel_spectrogram", takes=_OF_DECIBELS)
def _(mel: Mapping[str, Any], decibels: Mapping[str, Any], source: Spec, device: str) -> bool:
    return not mel.keys() & {"multiplier", "axes", "axis_names"}


@_mel_spectrogram.before("normalize", "merges", into="_mel_spectrogram", takes=_OF_NORMALIZATION)
def _(mel: Mapping[str, Any], normalize: Mapping[str, Any], source: Spec, device: str) -> bool:
    """Return whether mean and deviation are those of whole rows, and nothing has been normalized before."""
    axes, axis_names = normalize.get("axes"), normalize.get("axis_names")
    is_usual = normalize.get("dtype", DALIDataType.FLOAT) is DALIDataType.FLOAT and not normalize.get("batch")
    if axes is axis_names is None or not is_usual or mel.keys() & {"axes", "axis_names"}:
        return False
    if normalize.get("mean") is not None or normalize.get("stddev") is not None:
        return False
    return 1 in chosen_axes(Spec(layout=mel.get("layout", "ft"), ndim=2), axes, axis_names)
