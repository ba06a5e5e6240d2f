"""The window of a crop, and what happens outside of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalify.data import Samples
from dalify.kernels.arrays.gather import BORDERS, channel_fill, copy_bordered_window, copy_windows
from dalify.kernels.arrays.windows_torch import window_samples_torch
from dalify.kernels.images.crop_geometry import (
    FILLING,
    POLICIES,
    check_crop_arguments,
    check_fill_values,
    chunk_windows,
    crop_extents,
)
from dalify.registry import AnySamples, Parameters, PerSample, Shaping, Spec


@dataclass(slots=True)
class CropWindow(Parameters):
    """Extents and position of a window.

    Attributes:
        crop: extents of the window in pixels for the last axes of D (or F), H, W: [height, width] or
            [depth, height, width]; fractions are truncated, and 0 and negative numbers are the whole extent. Without
            any extents the whole sample is taken.
        crop_d: depth of the window; 0: the whole depth.
        crop_h: height of the window, with `crop_w`.
        crop_w: width of the window, with `crop_h`.
        crop_pos_x: position of the window, 0 (left) to 1 (right): it starts at ``crop_pos_x * (W - width)``.
        crop_pos_y: vertical position, 0 (top) to 1 (bottom).
        crop_pos_z: position along D (or F), 0 to 1.
        rounding: how the start of the window is rounded: ``round`` (half away from zero) or ``truncate``.
    """

    crop: Shaping[list[float]] | None = None
    crop_d: Shaping[float] = 0.0
    crop_h: Shaping[float] = 0.0
    crop_w: Shaping[float] = 0.0
    crop_pos_x: PerSample[float] = 0.5
    crop_pos_y: PerSample[float] = 0.5
    crop_pos_z: PerSample[float] = 0.5
    rounding: str = "round"

    @property
    def shaping(self) -> dict[str, Any]:
        """The arguments that determine the extents, by name."""
        return {"crop": self.crop, "crop_d": self.crop_d, "crop_h": self.crop_h, "crop_w": self.crop_w}

    def check(self, bounds: OutOfBounds | None = None, policies: Sequence[str] = POLICIES) -> None:
        """Raise ArgumentValueError for contradictory extents or unknown options."""
        policy = None if bounds is None else bounds.out_of_bounds_policy
        check_crop_arguments(rounding=self.rounding, policy=policy, policies=policies, **self.shaping)

    def extents(self, letters: str, extents: Sequence[int]) -> tuple[int, ...]:
        """Return the extents of the window of one sample; see `crop_extents`."""
        return crop_extents(letters, extents, **self.shaping)

    def windows(
        self, shapes: np.ndarray, layout: str, policy: str, *, skips_whole: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return starts and extents of the windows of a chunk; see `chunk_windows`."""
        position = self.named("crop_pos_x", "crop_pos_y", "crop_pos_z")
        return chunk_windows(shapes, layout, self.shaping, position, self.rounding, policy, skips_whole=skips_whole)


@dataclass(slots=True)
class OutOfBounds(Parameters):
    """The contents of the result where a window extends outside of the data.

    Attributes:
        fill_values: values outside the sample, one for all channels or one each; with ``pad``. In integer types
            fractions are truncated, and values out of range keep their lowest bits: -1 is 255 in uint8.
        out_of_bounds_policy: ``error``: windows must be inside the sample; ``pad`` (or ``constant``, ``const``): the
            outside is filled with `fill_values`; ``trim_to_shape``: windows are clipped; ``edge`` (``clamp``),
            ``reflect`` (``reflect_1001``), ``reflect_101``, ``wrap``: the sample is extended, as in ``fn.slice``.
    """

    fill_values: list[float] = field(default_factory=lambda: [0.0])
    out_of_bounds_policy: str = "error"

    @property
    def is_filling(self) -> bool:
        """Whether `fill_values` are used."""
        return self.out_of_bounds_policy in FILLING

    def check_channels(self, channels: int | np.ndarray) -> None:
        """Raise ArgumentValueError if there are neither one fill value nor one for each channel."""
        check_fill_values(self.fill_values, channels)

    def copy(self, out: AnySamples, x: AnySamples, start: np.ndarray, out_spec: Spec, layout: str) -> None:
        """Copy windows, and fill what is outside of the data.

        Args:
            out: receives the windows.
            x: samples of a chunk, on the CPU or on the GPU.
            start: int64 [N, ndim], start of the windows.
            out_spec: spec of the result.
            layout: layout by which fill values are assigned to channels.
        """
        if self.out_of_bounds_policy in BORDERS:
            copy_bordered_window(out, x, start, self.out_of_bounds_policy)
            return
        copy: Any = copy_windows if isinstance(x, Samples) else window_samples_torch
        fill_values = self.fill_values if self.is_filling else self.fill_values[:1]  # otherwise without effect
        copy(out, x, start, fill_values=channel_fill(fill_values, layout, out_spec.dtype))
