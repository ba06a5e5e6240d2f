"""Mirror samples along their spatial axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.data import Samples
from dalify.kernels.arrays.gather import flip_axes
from dalify.kernels.arrays.windows_torch import flip_samples_torch
from dalify.kernels.images.frames import visual_layout
from dalify.registry import AnySamples, PerSample, Spec, operator

_LAYOUTS = ("HWC", "FHWC", "DHWC", "FDHWC", "CHW", "FCHW", "CDHW", "FCDHW", "CFHW", "HW", "DHW")


@operator
def flip(
    x: Spec,
    /,
    *,
    depthwise: PerSample[int] = 0,
    horizontal: PerSample[int] = 1,
    vertical: PerSample[int] = 0,
) -> Spec:
    """Mirror each sample along the chosen axes. Without arguments: left to right.

    Args:
        x: images, volumes or sequences of any dtype; the layout names the axes (HWC where there is none).
        depthwise: non-zero reverses D; no effect without this axis.
        horizontal: non-zero reverses W.
        vertical: non-zero reverses H.

    Returns:
        Same shape, dtype and layout.

    Raises:
        LayoutError: the layout is not supported.

    Example:
        >>> images = fn.flip(images, horizontal=fn.random.coin_flip())  # doctest: +SKIP
    """
    return x.replace(layout=visual_layout(x, _LAYOUTS))


def _flags(layout, horizontal, vertical, depthwise):
    flags = {"W": horizontal, "H": vertical, "D": depthwise}
    return {axis: flags[letter] for axis, letter in enumerate(layout) if letter in flags}


@flip.cpu_samples
@flip.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
    *,
    horizontal: np.ndarray,
    vertical: np.ndarray,
    depthwise: np.ndarray,
    out_spec: Spec,
) -> None:
    compute: Any = flip_axes if isinstance(x, Samples) else flip_samples_torch
    compute(out, x, _flags(out_spec.layout, horizontal, vertical, depthwise))
