"""Counts which images of a ``mixed`` decoder the host decoded, for `explain()`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, weakref_slot=True, eq=False)
class DecodedCounts:
    """Numbers of images that one step has decoded; it lives as long as the step.

    Attributes:
        total: all images, except those from a cache.
        on_host: those that the host decoded.
        returned: number of these images for which the device's decoder returned no image of the expected shape.
    """

    total: int = 0
    on_host: int = 0
    returned: int = 0

    def __str__(self) -> str:
        """Return the number of images that the host decoded."""
        text = f"{self.on_host} of {self.total} images were decoded by the host"
        return text + (f"; the device's decoder returned no image for {self.returned}" if self.returned else "")
