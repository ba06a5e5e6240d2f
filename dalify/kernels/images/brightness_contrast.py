"""Kernels of brightness, contrast and brightness_contrast: one factor and one summand per image."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import DTypeError
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.data.spec import Spec
from dalify.kernels.arrays.frozen import repeated
from dalify.kernels.arrays.pointwise import scale_shift, scale_shift_torch
from dalify.kernels.images.frames import folded_frames, per_frame_of_samples, visual_layout

_LAYOUTS = ("FHWC", "DHWC", "HWC")


def levels_rule(x: Spec, dtype: DALIDataType | None) -> Spec:
    """Return the output spec: only the dtype may change.

    Raises:
        LayoutError: the layout is none of HWC, FHWC and DHWC.
        DTypeError: the dtype is boolean.
    """
    x = x.replace(layout=visual_layout(x, _LAYOUTS))
    if DALIDataType.BOOL in (x.dtype, dtype):
        raise DTypeError("brightness and contrast do not support booleans.")
    return x.replace(dtype=x.dtype if dtype is None else dtype)


@cache
def _highest(dtype: DALIDataType | None) -> float:
    """Return the value of full brightness: 1 for floats, the maximum for integers."""
    assert dtype is not None, "dalify bug: a kernel without element types"
    return 1.0 if dtype.is_float else float(np.iinfo(dtype.numpy).max)


def _line(
    x: Samples | DeviceSamples,
    frames: int,
    spec: Spec,
    out_spec: Spec,
    brightness: Any,
    brightness_shift: Any,
    contrast: Any,
    contrast_center: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the factor and the summand of each frame, two arrays float32 [frames]."""
    layout = visual_layout(spec, _LAYOUTS)
    highest = _highest(spec.dtype)
    given = (
        ("brightness", brightness, 1.0),
        ("brightness_shift", brightness_shift, 0.0),
        ("contrast", contrast, 1.0),
        # Half of the positive range: 0.5, 128, 16384 …
        ("contrast_center", contrast_center, 0.5 if highest == 1.0 else (highest + 1) / 2),
    )
    rows: list[np.ndarray] = []
    for name, values, neutral in given:
        rows.append(repeated(neutral, frames) if values is None else per_frame_of_samples(values, x, layout, name))
    lines = np.empty((2, frames), np.float32)
    _fill_lines(lines, np.concatenate(rows).reshape(len(rows), frames), np.float32(_highest(out_spec.dtype)))
    return lines[0], lines[1]


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _fill_lines(lines, levels, highest):
    """Fill factors and summands [2, N] from brightness, its shift, contrast and its center [4, N]."""
    for n in range(lines.shape[1]):
        bright, shift, around, center = levels[0, n], levels[1, n], levels[2, n], levels[3, n]
        lines[0, n] = bright * around
        lines[1, n] = shift * highest + bright * (center - around * center)


def levels(
    out: Samples | DeviceSamples,
    x: Samples | DeviceSamples,
    spec: Spec,
    out_spec: Spec,
    *,
    brightness: Any = None,
    brightness_shift: Any = None,
    contrast: Any = None,
    contrast_center: Any = None,
) -> None:
    """Compute ``shift * range + brightness * (center + contrast * (x - center))``.

    Args:
        out: N samples.
        x: N samples with the same shapes.
        spec: spec of `x`.
        out_spec: spec of `out`; its dtype determines the range that `brightness_shift` is a fraction of.
        brightness: [N, k] with k = 1 or the number of frames; None for 1.
        brightness_shift: same shape; None for 0.
        contrast: same shape; None for 1.
        contrast_center: same shape, in units of `x`; None for the middle of the positive range.
    """
    layout = visual_layout(spec, _LAYOUTS)
    target, source = folded_frames(out, layout), folded_frames(x, layout)
    given = brightness, brightness_shift, contrast, contrast_center
    compute: Any = scale_shift if isinstance(x, Samples) else scale_shift_torch
    compute(target, source, *_line(x, len(source), spec, out_spec, *given))
