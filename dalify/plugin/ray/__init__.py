"""Pipelines on the nodes of a Ray cluster: ``RayPipeline(pipe, workers=8)``; see docs/ray.md."""

from dalify.plugin.ray.data import PipelineMapper, pipeline_datasource
from dalify.plugin.ray.pipeline import RayPipeline
from dalify.plugin.ray.pool import RayPool

__all__ = ["PipelineMapper", "RayPipeline", "RayPool", "pipeline_datasource"]
