"""Data types: element types, layouts, specs, tensors, batches, memory."""

from dalify.data.batch import Array, Batch, array_dtype, shared_tensor, stack_samples, torch_dtype
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import (
    BY_NAME,
    DALIDataType,
    DALIImageType,
    DALIInterpType,
    PipelineAPIType,
    from_numpy,
    is_bfloat16,
    to_numpy,
)
from dalify.data.entries import Entries
from dalify.data.exchange import device_tensor, moved, to_host
from dalify.data.pool import BufferPool, pageable
from dalify.data.rows import Rows
from dalify.data.samples import Samples
from dalify.data.spec import Spec
from dalify.data.tensor import check_layout, converted, memory_of
from dalify.data.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU, batch_of, tensor_list
from dalify.data.torch_unsigned import joined_torch

__all__ = [
    "BY_NAME",
    "Array",
    "Batch",
    "BufferPool",
    "DALIDataType",
    "DALIImageType",
    "DALIInterpType",
    "DeviceSamples",
    "Entries",
    "PipelineAPIType",
    "Rows",
    "Samples",
    "Spec",
    "TensorCPU",
    "TensorGPU",
    "TensorListCPU",
    "TensorListGPU",
    "array_dtype",
    "batch_of",
    "check_layout",
    "converted",
    "device_tensor",
    "from_numpy",
    "is_bfloat16",
    "joined_torch",
    "memory_of",
    "moved",
    "pageable",
    "shared_tensor",
    "stack_samples",
    "tensor_list",
    "to_host",
    "to_numpy",
    "torch_dtype",
]
