"""Lazy mode: calls of ``dalify.eager`` are recorded, and computed together as one graph.

Programs are written as in eager mode and computed like pipelines: calls create the nodes of a graph, and when a value
is needed, the graph goes through the passes and threads of pipelines.
"""

from dalify.immediate.lazy.mode import Lazy, lazy
from dalify.immediate.lazy.statistics import Fallback, Statistics

__all__ = ["Fallback", "Lazy", "Statistics", "lazy"]
