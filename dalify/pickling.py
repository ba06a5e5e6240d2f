"""``pickle_by_value``, under DALI's import path: callbacks that are sent to worker processes with their code."""

from dalify import reducers
from dalify.sources.pickling import pickle_by_value

__all__ = ["pickle_by_value", "reducers"]
