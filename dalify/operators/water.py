"""Distort images as if seen through moving water."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dalify.base.optional import torch
from dalify.data import DeviceSamples, Samples
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.displacement_warp import moved_by_waves, water_points
from dalify.parameter_groups.displacement import Displacement
from dalify.registry import Parameters, Spec, operator


@dataclass(slots=True)
class Waves(Parameters):
    """How far pixels are displaced.

    Attributes:
        ampl_x: amplitude of the waves along x, pixels.
        ampl_y: amplitude of the waves along y, pixels.
        freq_x: frequency of the waves along x, radians per pixel of y; by default a wave is 128 pixels long.
        freq_y: frequency of the waves along y, radians per pixel of x.
        phase_x: phase of the waves along x, radians.
        phase_y: phase of the waves along y, radians.
    """

    ampl_x: float = 10.0
    ampl_y: float = 10.0
    freq_x: float = 2 * math.pi / 128
    freq_y: float = 2 * math.pi / 128
    phase_x: float = 0.0
    phase_y: float = 0.0

    def moved(self, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the displacements of rows and columns; see `moved_by_waves`."""
        amplitudes, frequencies = (self.ampl_x, self.ampl_y), (self.freq_x, self.freq_y)
        return moved_by_waves(height, width, amplitudes, frequencies, (self.phase_x, self.phase_y))


@operator(alphabetical=True)
def water(x: Spec, /, *, displacement: Displacement, waves: Waves) -> Spec:
    """Distort images as if seen through moving water.

    ``out(x, y) = in(x + ampl_x * sin(freq_x * y + phase_x), y + ampl_y * cos(freq_y * x + phase_y))``, with the
    origin at the corner of the first pixel.

    Args:
        x: images HWC of any numeric type.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        ArgumentValueError: an unsupported `interp_type`.

    Example:
        >>> images = fn.water(images, ampl_x=5, ampl_y=5)  # doctest: +SKIP
    """
    return displacement.result(x)


@water.cpu_samples
def _(out: Samples, x: Samples, *, displacement: Displacement, waves: Waves) -> None:
    height, width, _ = x.shapes.max(0).tolist()
    displacement.displace(out, x, water_points(*waves.moved(height, width)))


@water.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, displacement: Displacement, waves: Waves) -> None:
    def points(padded: torch.Tensor, _extents: np.ndarray) -> torch.Tensor:
        height, width = padded.shape[1:3]
        moved_x, moved_y = waves.moved(height, width)
        maps = np.empty((1, 2, height, width), np.float32)
        maps[0, 0] = np.arange(width, dtype=np.float32) + moved_x[:, None]
        maps[0, 1] = np.arange(height, dtype=np.float32)[:, None] + moved_y
        return uploaded(maps, padded.device)

    displacement.displace_samples(out, x, points)
