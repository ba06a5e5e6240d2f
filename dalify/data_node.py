"""Graph values and ``newaxis``, under DALI's import path."""

from dalify.graph.datanode import DataNode
from dalify.graph.expression import new_axis as newaxis

__all__ = ["DataNode", "newaxis"]
