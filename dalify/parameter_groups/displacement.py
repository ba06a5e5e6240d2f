"""How displaced pixels are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.data.dtypes import DALIInterpType
from dalify.kernels.images.displacement_warp import displace_cpu, displace_gpu, displaced_spec
from dalify.registry import Parameters, PerSample, Spec

__all__ = ["Displacement"]


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

    def displace(self, out: Any, x: Any, maps: np.ndarray) -> None:
        """Fill `out` with `x`, both arrays or both tensors, sampled at `maps`; see `displace_cpu`."""
        mask: Any = self.mask
        compute: Any = displace_cpu if isinstance(x, np.ndarray) else displace_gpu
        compute(out, x, maps, mask, self.interp_type, self.fill_value)
