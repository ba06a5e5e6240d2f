"""Iterators of JAX arrays over pipelines, and JAX functions as operators (``fn.jax_function``)."""

from dalify.plugin.collate import Packed, Pad
from dalify.plugin.epochs import LastBatchPolicy
from dalify.plugin.jax import fn
from dalify.plugin.jax.iterator import DALIClassificationIterator, DALIGenericIterator, data_iterator

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "LastBatchPolicy",
    "Packed",
    "Pad",
    "data_iterator",
    "fn",
]
