"""Compute spectra and sum them in bands, without storing them; convert the sums to decibels and normalize them.

The pass ``fuse`` inserts it; users do not call it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dalify.base.errors import DalifyError
from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.arrays.axes import chosen_axes
from dalify.kernels.arrays.normalize import normalize
from dalify.kernels.audio.decibels import check_decibels, to_decibels
from dalify.kernels.audio.spectrum import spectrogram
from dalify.parameter_groups.normalization import Standardization
from dalify.parameter_groups.spectra import MelFilters, Windows
from dalify.registry import Parameters, Spec, argument_names, operator


@dataclass(slots=True)
class Decibels(Parameters):
    """How the sums are converted to decibels.

    Attributes:
        cutoff_db: see ``to_decibels``.
        multiplier: see ``to_decibels``; None for no conversion.
        reference: see ``to_decibels``.
    """

    cutoff_db: float = -200.0
    multiplier: float | None = None
    reference: float = 0.0


@operator(alphabetical=True)
def _mel_spectrogram(
    x: Spec, /, *, windows: Windows, filters: MelFilters, decibels: Decibels, standardization: Standardization
) -> Spec:
    """Compute spectra and sum them in bands; convert the sums to decibels and normalize them.

    Args:
        x: see ``spectrogram``.
        axes: see ``normalize``; without axes and their names, nothing is normalized.

    Returns:
        float32, bands and windows in the order of `layout`.
    """
    result = filters.bands(windows.spectra(x))
    if decibels.multiplier is not None:
        check_decibels(decibels.multiplier, decibels.cutoff_db, decibels.reference)
    return result


@_mel_spectrogram.geometry
def _(x: Batch, *, windows: Windows, filters: MelFilters) -> dict[str, Any]:
    shapes = windows.shapes(x.shape_array(), filters.nfilter)
    return {} if shapes is None else {"out_shapes": shapes}


@_mel_spectrogram.cpu_samples
def _(
    out: Samples,
    x: Samples,
    *,
    windows: Windows,
    filters: MelFilters,
    decibels: Decibels,
    standardization: Standardization,
    out_spec: Spec,
) -> None:
    # First: after a kernel, code in Python is not in the CPU cache.
    axes, options = standardization.chosen_axes(out_spec), standardization.options
    spectrogram(out, x, **windows.options, bank=filters.bank(windows.length // 2 + 1))
    if decibels.multiplier is not None:
        to_decibels(out, out, decibels.multiplier, decibels.cutoff_db, decibels.reference or None)
    if standardization.has_axes:
        normalize(out, out, None, None, axes, **options)


@_mel_spectrogram.before("to_decibels", "merges", into="_mel_spectrogram", takes=argument_names(Decibels))
def _(mel: Mapping[str, Any], decibels: Mapping[str, Any], source: Spec, device: str) -> bool:
    return not mel.keys() & {"multiplier", "axes", "axis_names"}


@_mel_spectrogram.before("normalize", "merges", into="_mel_spectrogram", takes=argument_names(Standardization))
def _(mel: Mapping[str, Any], normalize: Mapping[str, Any], source: Spec, device: str) -> bool:
    """Return whether mean and deviation are computed over whole rows, and nothing has been normalized before."""
    axes, axis_names = normalize.get("axes"), normalize.get("axis_names")
    is_usual = normalize.get("dtype", DALIDataType.FLOAT) is DALIDataType.FLOAT and not normalize.get("batch")
    if axes is axis_names is None or not is_usual or mel.keys() & {"axes", "axis_names"}:
        return False
    if normalize.get("mean") is not None or normalize.get("stddev") is not None:
        return False
    with contextlib.suppress(DalifyError):  # normalize raises it, with its line
        return 1 in chosen_axes(Spec(layout=mel.get("layout", "ft"), ndim=2), axes, axis_names)
    return False
