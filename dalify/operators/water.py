"""Distort images as if seen through moving water."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.data import Array
from dalify.data.dtypes import DALIInterpType
from dalify.kernels.images.displacement_warp import displace_cpu, displace_gpu, displaced_spec, water_maps
from dalify.registry import PerSample, Spec, operator


@operator
def water(
    x: Spec,
    /,
    *,
    ampl_x: float = 10.0,
    ampl_y: float = 10.0,
    fill_value: float = 0.0,
    freq_x: float = 2 * math.pi / 128,
    freq_y: float = 2 * math.pi / 128,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: PerSample[int] = 1,
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
        fill_value: value outside the image.
        freq_x: frequency of the waves along x, radians per pixel of y; by default a wave is 128 pixels long.
        freq_y: frequency of the waves along y, radians per pixel of x.
        interp_type: INTERP_NN or INTERP_LINEAR.
        mask: 0 leaves the image unchanged.
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
    return displaced_spec(x, interp_type)


@water.cpu
@water.gpu
def _(
    out: Array,
    x: Array,
    *,
    ampl_x: float,
    ampl_y: float,
    fill_value: float,
    freq_x: float,
    freq_y: float,
    interp_type: DALIInterpType,
    mask: np.ndarray,
    phase_x: float,
    phase_y: float,
) -> None:
    compute: Any = displace_cpu if isinstance(x, np.ndarray) else displace_gpu
    maps = water_maps(x.shape[1], x.shape[2], (ampl_x, ampl_y), (freq_x, freq_y), (phase_x, phase_y))
    compute(out, x, maps, mask, interp_type, fill_value)
