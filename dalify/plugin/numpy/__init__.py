"""Pipelines as loaders of NumPy arrays, for everything that has no plugin of its own."""

from dalify.plugin.base_iterator import LastBatchPolicy
from dalify.plugin.collate import Packed, Pad
from dalify.plugin.numpy.iterators import DALIClassificationIterator, DALIGenericIterator

__all__ = ["DALIClassificationIterator", "DALIGenericIterator", "LastBatchPolicy", "Packed", "Pad"]
