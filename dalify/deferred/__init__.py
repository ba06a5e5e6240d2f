"""Lazy mode: calls of ``dalify.eager`` that are put off, and computed together as one graph.

A pipeline is defined and then run; an immediate call is run alone. Here a program is written like the second and
computed like the first: calls make the nodes of a graph, and where a value is needed, the graph goes through the passes
and the threads of pipelines.
"""

from dalify.deferred.mode import Lazy, lazy
from dalify.deferred.statistics import Fallback, Statistics

__all__ = ["Fallback", "Lazy", "Statistics", "lazy"]
