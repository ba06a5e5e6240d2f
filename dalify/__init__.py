"""dalify: DALI's programming model on every machine. A plain Python function becomes a data pipeline.

>>> from dalify import fn, pipeline_def, types
"""

from dalify import fn, ops, types
from dalify.graph import DataNode
from dalify.graph import new_axis as newaxis
from dalify.pipeline import OperatorConcurrency, Pipeline, StreamPolicy, pipeline_def

__all__ = ["DataNode", "OperatorConcurrency", "Pipeline", "StreamPolicy", "fn", "newaxis", "ops", "pipeline_def", "types"]
__version__ = "0.1.0"
