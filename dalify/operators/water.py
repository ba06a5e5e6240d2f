"""Distort images as if seen through moving water."""

from __future__ import annotations

import math

import numpy as np

from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.displacement_warp import water_maps
from dalify.parameter_groups.displacement import Displacement
from dalify.registry import Spec, operator


@operator(alphabetical=True)
def water(
    x: Spec,
    /,
    *,
    displacement: Displacement,
    ampl_x: float = 10.0,
    ampl_y: float = 10.0,
    freq_x: float = 2 * math.pi / 128,
    freq_y: float = 2 * math.pi / 128,
    phase_x: float = 0.0,
    phase_y: float = 0.0,
) -> Spec:
    """Distort images as if seen through moving water.

    ``out(x, y) = in(x + ampl_x * sin(freq_x * y + phase_x), y + ampl_y * cos(freq_y * x + phase_y))``, with the
    origin at the corner of the first pixel.

    Args:
        x: images HWC of any numeric type.
        ampl_x: amplitude of the waves along x, pixels.
        ampl_y: amplitude of the waves along y, pixels.
        freq_x: frequency of the waves along x, radians per pixel of y; by default a wave is 128 pixels long.
        freq_y: frequency of the waves along y, radians per pixel of x.
        phase_x: phase of the waves along x, radians.
        phase_y: phase of the waves along y, radians.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        ArgumentValueError: an unsupported `interp_type`.

    Example:
        >>> images = fn.water(images, ampl_x=5, ampl_y=5)  # doctest: +SKIP
    """
    return displacement.result(x)


@water.cpu
def _(
    out: np.ndarray,
    x: np.ndarray,
    *,
    displacement: Displacement,
    ampl_x: float,
    ampl_y: float,
    freq_x: float,
    freq_y: float,
    phase_x: float,
    phase_y: float,
) -> None:
    maps = water_maps(x.shape[1], x.shape[2], (ampl_x, ampl_y), (freq_x, freq_y), (phase_x, phase_y))
    displacement.displace(out, x, maps)


@water.gpu_samples
def _(
    out: DeviceSamples,
    x: DeviceSamples,
    *,
    displacement: Displacement,
    ampl_x: float,
    ampl_y: float,
    freq_x: float,
    freq_y: float,
    phase_x: float,
    phase_y: float,
) -> None:
    def points(padded: torch.Tensor, _extents: np.ndarray) -> torch.Tensor:
        height, width = padded.shape[1:3]
        maps = water_maps(height, width, (ampl_x, ampl_y), (freq_x, freq_y), (phase_x, phase_y))
        return uploaded(maps, padded.device)

    displacement.displace_samples(out, x, points)
