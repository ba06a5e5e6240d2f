"""The Ray package, imported on first use."""

from __future__ import annotations

from typing import Any

from dalify.base.optional import LazyModule

ray: Any = LazyModule("ray", "dalify.plugin.ray", "dalify[ray]")
ray_block: Any = LazyModule("ray.data.block", "Ray Data", "ray[data]")
ray_datasource: Any = LazyModule("ray.data.datasource", "Ray Data", "ray[data]")
