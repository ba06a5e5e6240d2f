"""Iterators of NumPy arrays over pipelines, for frameworks without a plugin."""

from dalify.plugin.collate import Packed, Pad
from dalify.plugin.epochs import LastBatchPolicy
from dalify.plugin.numpy.iterators import DALIClassificationIterator, DALIGenericIterator

__all__ = ["DALIClassificationIterator", "DALIGenericIterator", "LastBatchPolicy", "Packed", "Pad"]
