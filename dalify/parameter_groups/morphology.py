"""The mask of dilation and erosion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dalify.data import Samples
from dalify.kernels.images.image_planes import filter_layout
from dalify.kernels.images.morphology import min_max_filter_samples, min_max_filter_samples_torch, morphology_spec
from dalify.registry import AnySamples, Parameters, PerSampleOrFrame, Spec


@dataclass(slots=True)
class Mask(Parameters):
    """The mask, and how it is applied.

    Attributes:
        anchor: position of the output pixel in the mask, x and y from 0; -1: the center, rounded up for even sizes.
            Can be per frame.
        border_mode: values outside the image: "constant" (ignored), "replicate" (aa|abcd), "reflect"
            (ba|abcd), "reflect_101" (cb|abcd) or "wrap" (cd|abcd).
        iterations: number of times the operation is applied; 0 copies the images.
        mask_size: width and height, or one number for both. Can be per frame.
    """

    anchor: PerSampleOrFrame[int | list[int]] = field(default_factory=lambda: [-1, -1])
    border_mode: str = "constant"
    iterations: int = 1
    mask_size: PerSampleOrFrame[int | list[int]] = field(default_factory=lambda: [3, 3])

    def result(self, x: Spec) -> Spec:
        """Return the output spec; see `morphology_spec`."""
        return morphology_spec(x, self.border_mode, self.iterations)

    def fill(self, out: AnySamples, x: AnySamples, spec: Spec, *, largest: bool) -> None:
        """Fill `out` with the maximum or minimum under the mask; see `min_max_filter_samples`."""
        layout = filter_layout(spec)
        function: Any = min_max_filter_samples if isinstance(x, Samples) else min_max_filter_samples_torch
        function(out, x, layout, self.mask_size, self.anchor, self.border_mode, self.iterations, largest)
