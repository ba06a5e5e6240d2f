"""What users give to immediate calls, and what they get back.

Alone because here is the rule of samples and batches: a tensor list, or a list of arrays or bytes, is a batch; all
else is one sample, an array of however many dimensions too. Lists of numbers are one array.
"""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np

from dalify.base.errors import ArgumentTypeError, BatchSizeError, LayoutError, ShapeError
from dalify.base.optional import is_loaded, torch
from dalify.data import Batch, TensorCPU, TensorGPU, TensorListCPU, TensorListGPU, tensor_list
from dalify.data.tensor import check_layout
from dalify.graph import DataNode, Expression
from dalify.graph.constants import constant_array
from dalify.sources.convert import to_array, to_batch

__all__ = ["Deferred", "Kind", "Value", "batch", "is_batch", "is_value", "shown", "tensor", "value_of"]

Kind = Literal["numpy", "torch", "tensor", "batch"]

TensorList = TensorListCPU | TensorListGPU


class Value:
    """An input or a per-sample argument.

    Attributes:
        batch: the samples; one of them, unless the kind is ``batch``.
        kind: what the user gave, and gets back.
        is_array: whether results follow the kind: they do not follow that of numbers and bytes.
    """

    __slots__ = ("batch", "is_array", "kind")

    def __init__(self, data: Batch, kind: Kind, is_array: bool = True) -> None:
        self.batch = data
        self.kind: Kind = kind
        self.is_array = is_array

    def moved(self, device: str) -> Value:
        """Return an input where the operator was asked to run; ``mixed`` operators take it from the CPU."""
        if device != "gpu" or self.batch.device == "gpu":
            return self
        return Value(shown(self.batch, "batch")._as_gpu()._batch, self.kind, self.is_array)

    def repeated(self, count: int) -> Batch:
        """Return ``count`` samples: the one repeated, without copies, or the batch.

        Raises:
            BatchSizeError: a batch of another number of samples.
        """
        data = self.batch
        if len(data) == count:
            return data
        if self.kind == "batch":
            raise BatchSizeError(f"a batch of {len(data)} samples meets one of {count}.")
        dense = data.dense
        assert dense is not None, "dalify bug: a sample that is no array"
        shape = (count, *dense.shape[1:])
        dense = dense.expand(shape) if data.device == "gpu" else np.broadcast_to(dense, shape)
        origins = None if data.origins is None else list(data.origins) * count
        return Batch(dense, None, data.layout, data.device, origins, data.dtype)


class Deferred:
    """The result of a call that is computed when it is needed."""

    __slots__ = ()
    is_batch = False

    def get(self) -> Any:
        """Return what the call would have returned at once."""
        raise AssertionError("dalify bug: a deferred result without get")


def value_of(item: Any) -> Value:
    """Return what a user gave.

    Raises:
        ArgumentTypeError: nothing that holds data.
        DTypeError: elements that no operator can take.
    """
    if type(item) is np.ndarray:
        return Value(Batch(_owned(to_array(item))[None]), "numpy")
    if isinstance(item, (TensorListCPU, TensorListGPU)):
        return Value(_checked(item._batch), "batch")
    if isinstance(item, Deferred):
        return value_of(item.get())
    if isinstance(item, (TensorCPU, TensorGPU)):
        origins = None if item._origin is None else [item._origin]
        array = item._array
        array = _owned(to_array(array)) if item.device == "cpu" else array
        return Value(Batch(array[None], None, item._layout, item.device, origins), "tensor")
    if is_loaded("torch") and isinstance(item, torch.Tensor):
        array = to_array(item)
        return Value(Batch(array[None], None, "", "cpu" if isinstance(array, np.ndarray) else "gpu"), "torch")
    if isinstance(item, (bytes, bytearray, memoryview, str, os.PathLike)):
        return Value(Batch(_bytes(item)[None]), "numpy", is_array=False)
    if isinstance(item, (list, tuple)) and is_batch(item):
        samples = [one.get() if isinstance(one, Deferred) else one for one in item]
        samples = [_bytes(one) if isinstance(one, (bytes, bytearray, memoryview, str)) else one for one in samples]
        layout = next((one._layout for one in samples if isinstance(one, (TensorCPU, TensorGPU))), "")
        return Value(to_batch([getattr(one, "_array", one) for one in samples], layout=layout), "batch")
    if isinstance(item, Expression):
        return _constant(item)
    if isinstance(item, (bool, int, float, np.generic, list, tuple)):
        return Value(Batch(_numbers(item)[None]), "numpy", is_array=False)
    if _holds_array(item):
        array = to_array(item)
        device = "cpu" if isinstance(array, np.ndarray) else "gpu"
        return Value(Batch((_owned(array) if device == "cpu" else array)[None], None, "", device), "numpy")
    raise _unusable(item)


def is_batch(item: object) -> bool:
    """Tell whether a value is a batch: a tensor list, or a list or tuple of arrays, tensors, texts or bytes."""
    if isinstance(item, (TensorListCPU, TensorListGPU)):
        return True
    if isinstance(item, Deferred):
        return item.is_batch
    return isinstance(item, (list, tuple)) and bool(item) and all(map(_is_sample, item))


def is_value(item: object) -> bool:
    """Tell whether an argument was computed, and is no constant: an array, a tensor or a batch of these."""
    if isinstance(item, (str, bytes, bool, int, float)):
        return False
    return (
        isinstance(item, (np.ndarray, TensorCPU, TensorGPU, Deferred)) or is_batch(item) or hasattr(item, "__dlpack__")
    )


def _constant(item: Expression) -> Value:
    """Return what a typed constant is, such as ``types.Constant(3)``; a graph value has none yet."""
    node = item.node().edge.node
    if isinstance(item, DataNode) or node.operator.name != "_literal":
        raise ArgumentTypeError(
            "a graph value has no value yet.", hint="Inside a pipeline, use dalify.fn instead of dalify.eager."
        )
    array = _owned(node.arguments["value"])
    return Value(Batch(array[None], None, node.arguments.get("layout", "")), "numpy", is_array=False)


def _holds_array(item: object) -> bool:
    return any(hasattr(item, name) for name in ("__array__", "__array_interface__", "__dlpack__"))


def _numbers(item: Any) -> np.ndarray[Any, Any]:
    try:
        return constant_array(item)
    except ValueError:
        raise ShapeError(
            "this list is no array: its parts have different lengths.",
            hint="A batch is a list of arrays: eager.batch([...]).",
        ) from None


def _is_sample(item: object) -> bool:
    if isinstance(item, (np.generic, int, float)):
        return False
    if isinstance(item, (np.ndarray, TensorCPU, TensorGPU, bytes, bytearray, memoryview, str)):
        return True
    return not isinstance(item, (list, tuple, Expression)) and _holds_array(item)


def _bytes(item: Any) -> np.ndarray[Any, Any]:
    data = item if isinstance(item, (bytes, bytearray, memoryview)) else os.fsencode(item)
    return np.array(np.frombuffer(data, np.uint8))


def _owned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    # Compiled loops are compiled a second time for memory that must not be written, such as Pillow's.
    return array if array.flags.writeable else array.copy()


def _checked(data: Batch) -> Batch:
    if not len(data):
        raise BatchSizeError("a batch of no samples.", hint="There is nothing to compute for it.")
    return data


def _unusable(item: object) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"a value of type {type(item).__name__} cannot be used as data.",
        hint="Give an array, a tensor, bytes, numbers, or a batch: eager.batch([...]).",
    )


def shown(data: Batch, kind: Kind) -> Any:
    """Return a result in the form in which the data came; a sample on the device is a torch tensor then."""
    if kind == "batch":
        return tensor_list(data)
    sample = data.dense[0, ...] if data.dense is not None else data.samples[0]
    if kind == "tensor":
        origin = None if data.origins is None else data.origins[0]
        return (TensorGPU if data.device == "gpu" else TensorCPU)(sample, data.layout, origin)
    if kind == "torch" and data.device == "cpu":
        return torch.from_numpy(sample)
    return sample


def batch(samples: Any, layout: str = "") -> TensorList:
    """Return a batch.

    Args:
        samples: a list of samples of one type and one number of dimensions: arrays, tensors, bytes, numbers, lists of
            numbers; or one array or tensor whose first axis counts the samples.
        layout: letters of the dimensions of one sample, or "".

    Raises:
        BatchSizeError: there is no sample.
        DTypeError: samples of different element types.
        ShapeError: samples of different numbers of dimensions, or a single number.
        LayoutError: not one letter for each dimension.

    Example:
        >>> crops = eager.crop(eager.batch([image, image], layout="HWC"), crop=(20, 20))
    """
    if isinstance(samples, (list, tuple)) and not samples:
        raise BatchSizeError("a batch of no samples.", hint="There is nothing to compute for it.")
    if isinstance(samples, (list, tuple)) and not is_batch(samples):
        samples = [constant_array(item) if isinstance(item, (int, float, list, tuple)) else item for item in samples]
    result = value_of(list(samples)).batch if is_batch(samples) else to_batch(samples)
    layout = layout or result.layout
    check_layout(layout, result.ndim or 0)
    return tensor_list(result.with_layout(layout))


def tensor(data: Any, layout: str = "") -> TensorCPU | TensorGPU:
    """Return one sample that knows its layout; results of a tensor are tensors, and keep what they know.

    Args:
        data: an array, a tensor, bytes, or numbers. Memory is shared where that is possible.
        layout: letters of the dimensions, or "".

    Raises:
        LayoutError: not one letter for each dimension.

    Example:
        >>> planes = eager.tensor(image.transpose(2, 0, 1), "CHW")
    """
    if is_batch(data):
        data = np.asarray(data)
    given = value_of(data)
    if given.kind == "batch":
        raise ArgumentTypeError("this is a batch, and no single tensor.", hint="Write eager.batch(data).")
    sample = given.batch.samples[0]
    kind = TensorGPU if given.batch.device == "gpu" else TensorCPU
    if layout and len(layout) != sample.ndim:
        raise LayoutError(f"the layout {layout!r} has {len(layout)} letters for {sample.ndim} dimensions.")
    return kind(sample, layout or given.batch.layout)
