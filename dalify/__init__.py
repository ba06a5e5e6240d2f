"""dalify: DALI's programming model on every machine. A plain Python function becomes a data pipeline.

>>> from dalify import fn, pipeline_def, types
"""

from dalify import backend, data_node, eager, fn, math, ops, tensors, types
from dalify.deferred import lazy
from dalify.graph import DataNode
from dalify.graph import new_axis as newaxis
from dalify.pipeline import OperatorConcurrency, Pipeline, StreamPolicy, pipeline_def

__all__ = [
    "DataNode",
    "OperatorConcurrency",
    "Pipeline",
    "StreamPolicy",
    "backend",
    "data_node",
    "eager",
    "fn",
    "lazy",
    "math",
    "newaxis",
    "ops",
    "pipeline_def",
    "tensors",
    "types",
]
__version__ = "0.1.0"
