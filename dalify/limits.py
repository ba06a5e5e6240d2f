"""Limits on the resources that files and arguments can request: ``limits.configure(max_image_pixels=400_000_000)``."""

from dalify.base.limits import Limits, configure, current

__all__ = ["Limits", "configure", "current"]
