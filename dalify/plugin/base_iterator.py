"""DALI's import path of ``LastBatchPolicy`` and of the base class of its iterators, which programs subclass."""

from dalify.plugin.epochs import LastBatchPolicy
from dalify.plugin.pipeline_iterator import PipelineIterator

__all__ = ["LastBatchPolicy"]

_DaliBaseIterator = PipelineIterator
