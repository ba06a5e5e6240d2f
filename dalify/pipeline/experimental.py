"""``pipeline_def`` under the import path of DALI's former experimental version."""

from dalify.pipeline.definition import pipeline_def

__all__ = ["pipeline_def"]
