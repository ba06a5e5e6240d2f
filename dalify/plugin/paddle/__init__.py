"""Iterators of Paddle tensors over pipelines."""

from dalify.data import TensorGPU, TensorListCPU, TensorListGPU
from dalify.plugin.collate import Packed, Pad
from dalify.plugin.epochs import LastBatchPolicy
from dalify.plugin.paddle.iterators import DALIClassificationIterator, DALIGenericIterator
from dalify.plugin.paddle.tensors import (
    dtype_map,
    feed_ndarray,
    lod_tensor_clip,
    recursive_length,
    to_paddle_type,
)

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "LastBatchPolicy",
    "Packed",
    "Pad",
    "TensorGPU",
    "TensorListCPU",
    "TensorListGPU",
    "dtype_map",
    "feed_ndarray",
    "lod_tensor_clip",
    "recursive_length",
    "to_paddle_type",
]
