"""Mirror samples and change their brightness and contrast, on the CPU.

The pass ``fuse`` inserts it; users do not call it.
"""

from __future__ import annotations

import numpy as np

from dalify.base import scratch
from dalify.base.errors import DalifyError
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.kernels.arrays.gather import flip_axes
from dalify.kernels.arrays.pointwise import scale_shift
from dalify.kernels.images.brightness_contrast import LEVELS_LAYOUTS, factors_and_summands, levels_rule
from dalify.kernels.images.frames import FLIP_LAYOUTS, flip_flags, folded_frames, visual_layout
from dalify.registry import PerSample, Spec, Vectors, operator


@operator
def _flip_brightness_contrast(
    x: Spec,
    /,
    *,
    depthwise: PerSample[int] = 0,
    horizontal: PerSample[int] = 1,
    vertical: PerSample[int] = 0,
    brightness: PerSample[float | list[float]] = 1.0,
    brightness_shift: PerSample[float | list[float]] = 0.0,
    contrast: PerSample[float | list[float]] = 1.0,
    contrast_center: PerSample[float | list[float]] | None = None,
    dtype: DALIDataType | None = None,
) -> Spec:
    """Mirror samples, then change their brightness and contrast.

    Args:
        x: see ``flip``.
        depthwise: see ``flip``.
        horizontal: see ``flip``.
        vertical: see ``flip``.
        brightness: see ``brightness_contrast``.
        brightness_shift: see ``brightness_contrast``.
        contrast: see ``brightness_contrast``.
        contrast_center: see ``brightness_contrast``.
        dtype: see ``brightness_contrast``.

    Returns:
        see ``brightness_contrast``.
    """
    x = x.replace(layout=visual_layout(x, FLIP_LAYOUTS))
    try:
        return levels_rule(x, dtype)
    except DalifyError as error:
        error.argument = "brightness"  # it names the call
        raise


@_flip_brightness_contrast.cpu_samples
def _(
    out: Samples,
    x: Samples,
    *,
    depthwise: np.ndarray,
    horizontal: np.ndarray,
    vertical: np.ndarray,
    brightness: Vectors,
    brightness_shift: Vectors,
    contrast: Vectors,
    contrast_center: Vectors | None,
    spec: Spec,
    out_spec: Spec,
) -> None:
    layout = visual_layout(spec, LEVELS_LAYOUTS)
    flipped = _memory_like(x)
    target, source = folded_frames(out, layout), folded_frames(flipped, layout)
    lines = factors_and_summands(
        x, len(source), spec, out_spec, brightness, brightness_shift, contrast, contrast_center
    )
    _ = target.addresses  # listed before the first kernel: after it, Python code is not in the cache
    flip_axes(flipped, x, flip_flags(layout, horizontal, vertical, depthwise))
    scale_shift(target, source, *lines)


def _memory_like(x: Samples) -> Samples:
    """Return uninitialized samples with the shapes and the element type of others, until the next call."""
    if x.dense is None:
        return Samples.empty(x.shapes, x.dtype)
    return Samples.of_dense(scratch.borrow("mirrored samples", x.dense.shape, x.dtype))
