"""Pipelines in TensorFlow: ``DALIDataset`` is a ``tf.data.Dataset``, and iterators return eager tensors."""

from dalify.plugin.collate import Packed, Pad
from dalify.plugin.epochs import LastBatchPolicy
from dalify.plugin.tf import experimental
from dalify.plugin.tf.dataset import (
    DALIDataset,
    dataset_compatible_tensorflow,
    dataset_distributed_compatible_tensorflow,
    dataset_inputs_compatible_tensorflow,
    dataset_options,
)
from dalify.plugin.tf.iterators import DALIClassificationIterator, DALIGenericIterator
from dalify.plugin.tf.operator import DALIIterator, DALIIteratorWrapper, DALIRawIterator, serialize_pipeline

__all__ = [
    "DALIClassificationIterator",
    "DALIDataset",
    "DALIGenericIterator",
    "DALIIterator",
    "DALIIteratorWrapper",
    "DALIRawIterator",
    "LastBatchPolicy",
    "Packed",
    "Pad",
    "dataset_compatible_tensorflow",
    "dataset_distributed_compatible_tensorflow",
    "dataset_inputs_compatible_tensorflow",
    "dataset_options",
    "experimental",
    "serialize_pipeline",
]
