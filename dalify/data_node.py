"""Graph values, under DALI's import path."""

from dalify.graph.datanode import DataNode

__all__ = ["DataNode"]
