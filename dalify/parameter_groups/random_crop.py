"""The random window of area and aspect ratio."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalify.kernels.images.random_crop_window import check_random_crop, draws_per_sample, random_crop_windows
from dalify.registry import Parameters


@dataclass(slots=True)
class RandomCrop(Parameters):
    """A random window.

    Attributes:
        random_area: minimum and maximum fraction of the image area; uniform.
        random_aspect_ratio: minimum and maximum of width / height; log-uniform.
        num_attempts: maximum number of windows drawn before the largest allowed one is used.
    """

    random_area: list[float] = field(default_factory=lambda: [0.08, 1.0])
    # DALI prints 1.333333 but uses 4:3.
    random_aspect_ratio: list[float] = field(default_factory=lambda: [3 / 4, 4 / 3])
    num_attempts: int = 10

    def check(self) -> None:
        """Raise ArgumentValueError for a range that is empty or out of bounds."""
        check_random_crop(self.random_area, self.random_aspect_ratio, self.num_attempts)

    def windows(self, extents: np.ndarray, draws: Any) -> np.ndarray:
        """Return the windows of a chunk, [N, 4]: starts and extents.

        Args:
            extents: int64 [N, 2], height and width.
            draws: random numbers of the samples.
        """
        uniforms = draws.uniform(draws_per_sample(self.num_attempts))
        return random_crop_windows(extents, uniforms, self.random_area, self.random_aspect_ratio)
