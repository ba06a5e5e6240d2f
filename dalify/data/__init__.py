"""Data and their descriptions: element types, layouts, specs, tensors, batches, memory."""

from dalify.data.batch import Array, Batch, array_dtype, stack_samples
from dalify.data.dtypes import DALIDataType, DALIImageType, DALIInterpType, PipelineAPIType, from_numpy, to_numpy
from dalify.data.pool import BufferPool
from dalify.data.spec import Spec

__all__ = [
    "Array",
    "Batch",
    "BufferPool",
    "DALIDataType",
    "DALIImageType",
    "DALIInterpType",
    "PipelineAPIType",
    "Spec",
    "array_dtype",
    "from_numpy",
    "stack_samples",
    "to_numpy",
]
