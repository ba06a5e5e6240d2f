"""Iterators over pipelines that return MXNet's ``DataBatch`` objects, or lists of arrays for Gluon."""

from dalify.plugin.collate import Packed, Pad
from dalify.plugin.epochs import LastBatchPolicy
from dalify.plugin.mxnet.iterators import DALIClassificationIterator, DALIGenericIterator, DALIGluonIterator
from dalify.plugin.mxnet.tensors import feed_ndarray

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "DALIGluonIterator",
    "LastBatchPolicy",
    "Packed",
    "Pad",
    "feed_ndarray",
]
