"""Pipelines as PyTorch loaders: ``for batch in DALIGenericIterator(pipe, ["images", "labels"], …)``.

And the other way round: `DataLoader` takes torch's datasets and torchvision's transforms as they are.
"""

from dalify.plugin.base_iterator import LastBatchPolicy
from dalify.plugin.pytorch import fn
from dalify.plugin.pytorch.collate import Packed, Pad
from dalify.plugin.pytorch.dropin.loader import DataLoader
from dalify.plugin.pytorch.iterators import DALIClassificationIterator, DALIGenericIterator, DALIRaggedIterator
from dalify.plugin.pytorch.tensors import feed_ndarray, to_torch_type

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "DALIRaggedIterator",
    "DataLoader",
    "LastBatchPolicy",
    "Packed",
    "Pad",
    "feed_ndarray",
    "fn",
    "to_torch_type",
]
