"""Conversion of inputs and results of immediate calls.

A tensor list, or a list of arrays or bytes, is a batch. Everything else is one sample, including arrays with any number
of dimensions. A list of numbers is one array.
"""

from __future__ import annotations

import os
from typing import Any, Literal, Protocol

import numpy as np

from dalify.base.errors import ArgumentTypeError, BatchSizeError, LayoutError, ShapeError
from dalify.base.optional import is_loaded, torch
from dalify.base.wording import counted
from dalify.data import (
    Batch,
    TensorCPU,
    TensorGPU,
    TensorListCPU,
    TensorListGPU,
    batch_of,
    memory_of,
    moved,
    tensor_list,
)
from dalify.data.tensor import check_layout, layout_of, origin_of, shared_layout
from dalify.graph import DataNode, Expression
from dalify.graph.constants import constant_array
from dalify.registry import Role
from dalify.sources.convert import to_array, to_batch, writable

Kind = Literal["numpy", "torch", "tensor", "batch"]

TensorList = TensorListCPU | TensorListGPU


class Value:
    """An input or a per-sample argument.

    Attributes:
        batch: the samples; one sample, unless the kind is ``batch``.
        kind: type of the user's object, and of the result.
        is_array: whether results are of the same kind; numbers and bytes do not determine the kind of results.
    """

    __slots__ = ("batch", "is_array", "kind")

    def __init__(self, data: Batch, kind: Kind, is_array: bool = True) -> None:
        self.batch = data
        self.kind: Kind = kind
        self.is_array = is_array

    def moved(self, device: str) -> Value:
        """Return an input on the device of the operator; inputs of ``mixed`` operators are on the CPU."""
        if device != "gpu" or self.batch.device == "gpu":
            return self
        return Value(moved(self.batch, "gpu"), self.kind, self.is_array)

    def repeated(self, count: int) -> Batch:
        """Return ``count`` samples: one sample repeated without copies, or the batch.

        Raises:
            BatchSizeError: a batch with another number of samples.
        """
        data = self.batch
        if len(data) == count:
            return data
        if self.kind == "batch":
            raise BatchSizeError(
                f"a batch of {counted(len(data), 'sample')} does not match a batch of {counted(count, 'sample')}."
            )
        dense = data.dense
        assert dense is not None, "dalify bug: a sample is not an array"
        shape = (count, *dense.shape[1:])
        dense = dense.expand(shape) if data.device == "gpu" else np.broadcast_to(dense, shape)
        origins = None if data.origins is None else list(data.origins) * count
        return Batch(dense, None, data.layout, data.device, origins, data.dtype)


class Source(Protocol):
    """A call that computes its outputs when they are requested."""

    def result(self, output: int) -> Batch:
        """Return an output; compute it if necessary."""
        ...


class Deferred:
    """A value of the user: data, or the output of a call that computes them at the first access.

    Attributes:
        kind: kind of the object that ``get`` returns.
        source: the call; None if the data exist.
        is_exposed: whether the user has the memory, and may modify it.
    """

    __slots__ = ("__weakref__", "_batch", "is_exposed", "output", "source")
    is_batch = False
    kind: Kind

    def __init__(self, source: Source, output: int) -> None:
        self._batch: Batch | None = None
        self.source: Source | None = source
        self.output = output
        self.is_exposed = False

    def set_data(self, data: Batch, is_exposed: bool = False) -> None:
        """Store the data, and release the call."""
        self._batch, self.source, self.is_exposed = data, None, is_exposed

    @property
    def is_computed(self) -> bool:
        """Whether the data exist."""
        return self._batch is not None

    @property
    def batch(self) -> Batch:
        """The samples, which are computed now if necessary."""
        source = self.source
        if source is not None:
            self._batch, self.source = source.result(self.output), None  # in this order, because of other threads
        assert self._batch is not None, "dalify bug: a value without data"
        return self._batch

    def get(self) -> Any:
        """Return the result of the call in eager mode: a tensor list, an array or a tensor."""
        return to_user_data(self.batch, self.kind)


def value_of(item: Any) -> Value:
    """Convert a user's object to a `Value`.

    Raises:
        ArgumentTypeError: a type that contains no data.
        DTypeError: an unsupported element type.
    """
    if type(item) is np.ndarray:
        return Value(Batch(writable(to_array(item))[None]), "numpy")
    if isinstance(item, (TensorListCPU, TensorListGPU)):
        if not len(item):
            raise _empty_batch()
        return Value(batch_of(item), "batch")
    if isinstance(item, Deferred):
        return value_of(item.get())
    if isinstance(item, (TensorCPU, TensorGPU)):
        origin, array = origin_of(item), memory_of(item)
        array = writable(to_array(array)) if item.device == "cpu" else array
        origins = None if origin is None else [origin]
        return Value(Batch(array[None], None, layout_of(item), item.device, origins), "tensor")
    if is_loaded("torch") and isinstance(item, torch.Tensor):
        array = to_array(item)
        return Value(Batch(array[None], None, "", "cpu" if isinstance(array, np.ndarray) else "gpu"), "torch")
    if isinstance(item, (bytes, bytearray, memoryview, str, os.PathLike)):
        return Value(Batch(_bytes(item)[None]), "numpy", is_array=False)
    if isinstance(item, (list, tuple)) and is_batch(item):
        samples = [one.get() if isinstance(one, Deferred) else one for one in item]
        samples = [_bytes(one) if isinstance(one, (bytes, bytearray, memoryview, str)) else one for one in samples]
        layout = shared_layout(samples)
        samples = [memory_of(one) if isinstance(one, (TensorCPU, TensorGPU)) else one for one in samples]
        return Value(to_batch(samples, layout=layout), "batch")
    if isinstance(item, Expression):
        return _constant(item)
    if isinstance(item, (bool, int, float, np.generic, list, tuple)):
        return Value(Batch(_numbers(item)[None]), "numpy", is_array=False)
    if _has_array_interface(item):
        array = to_array(item)
        device = "cpu" if isinstance(array, np.ndarray) else "gpu"
        return Value(Batch((writable(array) if device == "cpu" else array)[None], None, "", device), "numpy")
    raise ArgumentTypeError(
        f"a value of type {type(item).__name__} cannot be used as data.",
        hint="Pass an array, a tensor, bytes, numbers, or a batch: eager.batch([...]).",
    )


def is_batch(item: object) -> bool:
    """Return whether an object is a batch: a tensor list, or a list or tuple of arrays, tensors, strings or bytes."""
    if isinstance(item, (TensorListCPU, TensorListGPU)):
        return True
    if isinstance(item, Deferred):
        return item.is_batch
    return isinstance(item, (list, tuple)) and bool(item) and all(map(_is_sample, item))


def is_value(item: object) -> bool:
    """Return whether an argument is data, not a constant: an array, a tensor or a batch of these."""
    if isinstance(item, (str, bytes, bool, int, float)):
        return False
    return (
        isinstance(item, (np.ndarray, TensorCPU, TensorGPU, Deferred)) or is_batch(item) or hasattr(item, "__dlpack__")
    )


def _constant(item: Expression) -> Value:
    """Return the value of a typed constant, such as ``types.Constant(3)``; graph values are an error."""
    node = item.node().edge.node
    if isinstance(item, DataNode) or node.role is not Role.LITERAL:
        raise ArgumentTypeError(
            "eager operators cannot be used on graph values, which have no value while the pipeline is defined.",
            hint="Inside a pipeline, use dalify.fn instead of dalify.eager.",
        )
    array = writable(node.arguments["value"])
    return Value(Batch(array[None], None, node.arguments.get("layout", "")), "numpy", is_array=False)


def _has_array_interface(item: object) -> bool:
    return any(hasattr(item, name) for name in ("__array__", "__array_interface__", "__dlpack__"))


def _numbers(item: Any) -> np.ndarray[Any, Any]:
    try:
        return constant_array(item)
    except ValueError:
        raise ShapeError(
            "this list cannot be an array: its items have different lengths.",
            hint="A batch is a list of arrays: eager.batch([...]).",
        ) from None


def _is_sample(item: object) -> bool:
    if isinstance(item, (np.generic, int, float)):
        return False
    if isinstance(item, (np.ndarray, TensorCPU, TensorGPU, bytes, bytearray, memoryview, str)):
        return True
    return not isinstance(item, (list, tuple, Expression)) and _has_array_interface(item)


def _bytes(item: Any) -> np.ndarray[Any, Any]:
    data = item if isinstance(item, (bytes, bytearray, memoryview)) else os.fsencode(item)
    return np.array(np.frombuffer(data, np.uint8))


def _empty_batch() -> BatchSizeError:
    return BatchSizeError("the batch is empty.", hint="Eager operators require at least one sample.")


def to_user_data(data: Batch, kind: Kind) -> Any:
    """Convert a result to the kind of the inputs; a sample on the device becomes a torch tensor."""
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
        samples: a list of samples with the same element type and number of dimensions: arrays, tensors, bytes, numbers,
            lists of numbers; or one array or tensor whose first axis is the sample.
        layout: layout of one sample, or "".

    Raises:
        BatchSizeError: there are no samples.
        DTypeError: samples of different element types.
        ShapeError: samples of different numbers of dimensions, or a single number.
        LayoutError: the number of letters is not the number of dimensions.

    Example:
        >>> crops = eager.crop(eager.batch([image, image], layout="HWC"), crop=(20, 20))
    """
    if isinstance(samples, (list, tuple)) and not samples:
        raise _empty_batch()
    if isinstance(samples, (list, tuple)) and not is_batch(samples):
        samples = [constant_array(item) if isinstance(item, (int, float, list, tuple)) else item for item in samples]
    result = value_of(list(samples)).batch if is_batch(samples) else to_batch(samples)
    layout = layout or result.layout
    check_layout(layout, result.ndim or 0)
    return tensor_list(result.with_layout(layout))


def tensor(data: Any, layout: str = "") -> TensorCPU | TensorGPU:
    """Return one sample with a layout. Results of operators on tensors are tensors with layouts.

    Args:
        data: an array, a tensor, bytes, or numbers. Memory is shared if possible.
        layout: layout of the sample, or "".

    Raises:
        LayoutError: the number of letters is not the number of dimensions.

    Example:
        >>> planes = eager.tensor(image.transpose(2, 0, 1), "CHW")
    """
    if is_batch(data):
        data = np.asarray(data)
    given = value_of(data)
    if given.kind == "batch":
        raise ArgumentTypeError("this is a batch, not a single tensor.", hint="Use eager.batch(data).")
    sample = given.batch.samples[0]
    kind = TensorGPU if given.batch.device == "gpu" else TensorCPU
    if layout and len(layout) != sample.ndim:
        raise LayoutError(
            f"the layout {layout!r} has {counted(len(layout), 'letter')} for {counted(sample.ndim, 'dimension')}."
        )
    return kind(sample, layout or given.batch.layout)
