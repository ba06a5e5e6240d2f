"""Dynamic mode: operators without a pipeline, under the names of ``nvidia.dali.experimental.dynamic``.

>>> import dalify.experimental.dynamic as ndd

*Tensors and batches.* Operators accept and return ``Tensor`` and ``Batch``. Other values are converted to one Tensor:
arrays, torch tensors, numbers, nested lists, bytes. A call returns a Batch if an input or an argument is a Batch, or
with ``batch_size=``; single tensors are broadcast to all samples.

*Evaluation.* A call computes before it returns, or in ``with ndd.EvalMode.deferred``, when a result is accessed.

*Random numbers.* Each call draws from ``rng=``, or from the generator of its thread, which
``ndd.random.set_seed(7)`` resets.

*Readers* are objects: ``for files, labels in reader.next_epoch(batch_size=32)``.
"""

from dalify.api import module_hooks
from dalify.experimental.dynamic import capture, checkpoint, math, pytorch
from dalify.experimental.dynamic.batch import Batch
from dalify.experimental.dynamic.context import EvalContext, EvalMode, ThreadPool, get_num_threads, set_num_threads
from dalify.experimental.dynamic.devices import Device, device
from dalify.experimental.dynamic.dtypes import (
    DataType,
    DType,
    ImageType,
    InterpType,
    bfloat16,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    type_id,
    uint8,
    uint16,
    uint32,
    uint64,
)
from dalify.experimental.dynamic.dtypes import bool_ as bool
from dalify.experimental.dynamic.external import ExternalSource
from dalify.experimental.dynamic.functions import as_batch, as_tensor, batch, imread, tensor
from dalify.experimental.dynamic.names import install_names
from dalify.experimental.dynamic.streams import (
    Stream,
    get_current_stream,
    get_default_stream,
    set_current_stream,
    set_default_stream,
    stream,
)
from dalify.experimental.dynamic.tensor import Tensor

__all__ = [
    "Batch",
    "DType",
    "DataType",
    "Device",
    "EvalContext",
    "EvalMode",
    "ExternalSource",
    "ImageType",
    "InterpType",
    "Stream",
    "Tensor",
    "ThreadPool",
    "as_batch",
    "as_tensor",
    "batch",
    "bfloat16",
    "bool",
    "capture",
    "checkpoint",
    "device",
    "dtype",
    "float16",
    "float32",
    "float64",
    "get_current_stream",
    "get_default_stream",
    "get_num_threads",
    "imread",
    "int8",
    "int16",
    "int32",
    "int64",
    "math",
    "pytorch",
    "set_current_stream",
    "set_default_stream",
    "set_num_threads",
    "stream",
    "tensor",
    "type_id",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

__getattr__, __dir__ = module_hooks(install_names(__name__), globals())
