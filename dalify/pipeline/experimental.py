"""``pipeline_def`` under the import path that DALI once gave its experimental form."""

from dalify.pipeline.definition import pipeline_def

__all__ = ["pipeline_def"]
