"""``@pipeline_def`` and ``Pipeline``."""

from dalify.executor.options import OperatorConcurrency, PipelineOptions, StreamPolicy
from dalify.frontend import do_not_convert
from dalify.graph import DataNode
from dalify.pipeline import experimental
from dalify.pipeline.definition import pipeline_def
from dalify.pipeline.pipeline import Pipeline

__all__ = [
    "DataNode",
    "OperatorConcurrency",
    "Pipeline",
    "PipelineOptions",
    "StreamPolicy",
    "do_not_convert",
    "experimental",
    "pipeline_def",
]
