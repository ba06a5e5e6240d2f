"""Operators without a pipeline's graph: calls on data, lazy mode, and debug mode.

`calls` interprets a call on data and computes it with a prepared node (`prepared`), which is cached; ``dalify.eager``
and dynamic mode use it. `debug` and `lazy` are evaluators (`dalify.graph.evaluator`): debug mode computes the nodes of
a pipeline function one by one, lazy mode records calls on data and computes them together.
"""

from dalify.immediate.calls import bind_call, compute_outputs
from dalify.immediate.user_data import Deferred, Source, Value, is_batch, value_of

__all__ = ["Deferred", "Source", "Value", "bind_call", "compute_outputs", "is_batch", "value_of"]
