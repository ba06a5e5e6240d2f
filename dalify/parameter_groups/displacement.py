"""How displaced pixels are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dalify.data import DALIInterpType, DeviceSamples, Samples
from dalify.kernels.arrays.convert import fill_in_range
from dalify.kernels.images.displacement_warp import (
    FillPoints,
    PointsTorch,
    displace_cpu,
    displace_samples_torch,
    displaced_spec,
)
from dalify.registry import Parameters, PerSample, Spec


@dataclass(slots=True)
class Displacement(Parameters):
    """How displaced pixels are read.

    Attributes:
        fill_value: value outside the image.
        interp_type: INTERP_NN or INTERP_LINEAR.
        mask: 0 leaves the image unchanged.
    """

    fill_value: float = 0.0
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN
    mask: PerSample[int] = 1

    def result(self, x: Spec) -> Spec:
        """Return the output spec; see `displaced_spec`."""
        return displaced_spec(x, self.interp_type)

    def displace(self, out: Samples, x: Samples, fill_points: FillPoints) -> None:
        """Fill `out` with `x` sampled at points that depend on the shape of an image; see `displace_cpu`."""
        mask: Any = self.mask
        fill_value = fill_in_range(self.fill_value, x.dtype).item()
        displace_cpu(out, x, fill_points, mask, self.interp_type, fill_value, is_shared=True)

    def displace_samples(self, out: DeviceSamples, x: DeviceSamples, points: PointsTorch) -> None:
        """Fill `out` with `x` sampled at `points`; see `displace_samples_torch`."""
        mask: Any = self.mask
        displace_samples_torch(out, x, points, mask, self.interp_type, self.fill_value)
