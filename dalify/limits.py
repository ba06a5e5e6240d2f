"""Limits on what files and arguments may ask for: ``limits.configure(max_image_pixels=400_000_000)``."""

from dalify.base.limits import Limits, configure, current

__all__ = ["Limits", "configure", "current"]
