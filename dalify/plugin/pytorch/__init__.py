"""Iterators of PyTorch tensors over pipelines.

`DataLoader` runs torch datasets with torchvision transforms, `accelerate` converts existing loaders, and `lower`
converts single transforms.
"""

from dalify.data import TensorCPU, TensorGPU, TensorListGPU
from dalify.pipeline import Pipeline
from dalify.plugin.collate import Packed, Pad
from dalify.plugin.epochs import LastBatchPolicy
from dalify.plugin.pytorch import experimental, fn, torch_utils
from dalify.plugin.pytorch.dropin.accelerating import accelerate, patch, unpatch
from dalify.plugin.pytorch.dropin.loader import DataLoader
from dalify.plugin.pytorch.dropin.lowering import lower
from dalify.plugin.pytorch.dropin.registration import register_dataset, register_transform
from dalify.plugin.pytorch.dropin.ssd import SsdDataLoader
from dalify.plugin.pytorch.fn import TorchPythonFunction
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
    "Pipeline",
    "SsdDataLoader",
    "TensorCPU",
    "TensorGPU",
    "TensorListGPU",
    "TorchPythonFunction",
    "accelerate",
    "experimental",
    "feed_ndarray",
    "fn",
    "lower",
    "patch",
    "register_dataset",
    "register_transform",
    "to_torch_type",
    "torch_utils",
    "unpatch",
]
