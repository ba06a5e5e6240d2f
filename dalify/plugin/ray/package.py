"""The package Ray, loaded when it is first used."""

from __future__ import annotations

from typing import Any

from dalify.base.optional import LazyModule

__all__ = ["ray"]

ray: Any = LazyModule("ray", "dalify.plugin.ray", "dalify[ray]")
