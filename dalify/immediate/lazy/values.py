"""Lazy values: results of recorded calls, computed when their data are accessed.

A lazy value has all methods of the result of the call, a tensor list, an array or a tensor. Element type, dimensions,
layout and number of samples are known without computing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from dalify.base.errors import ArgumentTypeError, ConditionError
from dalify.base.optional import torch
from dalify.data import torch_dtype
from dalify.graph import ArithmeticMixin, Expression, node_specs
from dalify.immediate.calls import call_operator
from dalify.immediate.lazy.calls import Call, kind_of_result
from dalify.immediate.user_data import Deferred, to_user_data
from dalify.registry import catalog

_NAMES_IN_PYTHON = {
    "bitand": "and_",
    "bitnot": "invert",
    "bitor": "or_",
    "bitxor": "xor",
    "div": "floordiv",
    "fdiv": "truediv",
    "geq": "ge",
    "leq": "le",
    "minus": "neg",
    "neq": "ne",
    "plus": "pos",
}
_PROTOCOLS = ("__array_interface__", "__cuda_array_interface__", "__dlpack__", "__dlpack_device__")


class LazyValue(Deferred):
    """A result of a recorded call.

    Attributes:
        spec: properties that are known without computing.
    """

    __slots__ = ("_user_data", "call", "kind", "spec")

    def __init__(self, call: Call, output: int) -> None:
        super().__init__(call, output)
        self.call = call
        self.kind = kind_of_result(call, output)
        self.spec = node_specs(call.node)[output]
        self._user_data: Any = None
        call.lazy_values.append(ref(self))

    def get(self) -> Any:
        """Return the result of eager mode: a tensor list, an array or a tensor."""
        if self._user_data is None:
            result = self.batch
            if self.call.waiting_readers():  # they need the data as they are now, and the user may change them
                result = result.copied()
            self._user_data = to_user_data(result, self.kind)
            self.is_exposed = True
        return self._user_data

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the data on the host, as one array; of a batch ``[N, ...]``.

        Raises:
            ShapeError: the samples have different shapes.
        """
        value = self.get()
        value = value.as_cpu() if hasattr(value, "as_cpu") else value.cpu() if hasattr(value, "cpu") else value
        return np.asarray(value)

    def torch(self) -> Any:
        """Return the data as one torch tensor on their device; of a batch ``[N, ...]``.

        Raises:
            ShapeError: the samples have different shapes.
        """
        value = self.get()
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, np.ndarray):
            return torch.from_numpy(value)
        return torch.from_dlpack(value.as_tensor() if self.is_batch else value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return the data as a NumPy array."""
        return np.array(self.numpy(), dtype, copy=copy)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the data."""
        if name.startswith("__") and name not in _PROTOCOLS:
            raise AttributeError(name)  # special methods that Python looks up, for instance to copy
        return getattr(self.get(), name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def __getitem__(self, index: Any) -> Any:
        """Return a sample of a batch, an element or a part of an array."""
        return self.get()[index]

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    def __reduce__(self) -> Any:
        """Copy and pickle the computed data."""
        return _identity, (self.get(),)


def _identity(value: Any) -> Any:
    return value


class LazyBatch(LazyValue, Expression[Any]):
    """A lazy tensor list.

    Arithmetic and comparisons are recorded operators with the rules of pipelines.
    """

    __slots__ = ()
    is_batch = True

    def _apply(self, function: str, *operands: Any) -> Any:
        return call_operator(catalog.find("arithmetic"), operands, {"function": function})

    def node(self) -> NoReturn:
        """Raise an error: a lazy batch is not a graph value.

        Raises:
            ArgumentTypeError: always.
        """
        raise ArgumentTypeError.here(
            "a batch of lazy mode is not a graph value.",
            hint="Use dalify.eager instead of dalify.fn and dalify.math, or pass the data: batch.get().",
        )

    def __len__(self) -> int:
        """Return the number of samples."""
        return self.call.count

    @property
    def dtype(self) -> Any:
        """Element type."""
        return self.spec.dtype if self.spec.dtype is not None else self.get().dtype

    @property
    def device(self) -> str:
        """``cpu`` or ``gpu``."""
        return self.spec.device

    def ndim(self) -> int:
        """Return the number of dimensions of a sample."""
        return self.spec.ndim if self.spec.ndim is not None else self.get().ndim()

    def layout(self) -> str:
        """Return the layout of a sample, or ""."""
        if not self.is_exposed and self.spec.is_known:  # a user with the data may have changed it
            return self.spec.layout or ""
        return self.get().layout()

    def __bool__(self) -> NoReturn:
        raise ConditionError.here(
            "a batch has no truth value, because it may differ per sample.",
            hint="Use batch.numpy().all(), or a pipeline, whose `if` is evaluated per sample.",
        )


def _in_place(function: Callable[[Any, Any], Any]) -> Callable[[LazyValue, Any], Any]:
    return lambda self, other: function(self.get(), _data_of(other))


def _conversion(function: Callable[[Any], Any]) -> Callable[[LazyValue], Any]:
    return lambda self: function(self.get())


def _data_of(item: Any) -> Any:
    return item.get() if isinstance(item, Deferred) else item


class LazySample(LazyValue, ArithmeticMixin[Any]):
    """A lazy array or tensor.

    Arithmetic and other operations of arrays compute immediately, with the rules of NumPy or torch.
    """

    __slots__ = ()

    # In place: the variable then refers to the array.
    __iadd__ = _in_place(operator.iadd)
    __isub__ = _in_place(operator.isub)
    __imul__ = _in_place(operator.imul)
    __itruediv__ = _in_place(operator.itruediv)
    __iand__ = _in_place(operator.iand)
    __ior__ = _in_place(operator.ior)
    __len__ = _conversion(len)
    __bool__ = _conversion(bool)
    __int__ = _conversion(int)
    __float__ = _conversion(float)
    __index__ = _conversion(operator.index)

    def _apply(self, function: str, *operands: Any) -> Any:
        return getattr(operator, _NAMES_IN_PYTHON.get(function, function))(*map(_data_of, operands))

    def __matmul__(self, other: Any) -> Any:
        return self._apply("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._apply("matmul", other, self)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.get()[index] = _data_of(value)

    @classmethod
    def __torch_function__(cls, function: Any, _types: Any, given: Any = (), arguments: Any = None) -> Any:
        """Call a torch function with the data."""
        positional = [
            [_data_of(one) for one in item] if isinstance(item, (list, tuple)) else _data_of(item) for item in given
        ]
        return function(*positional, **{name: _data_of(item) for name, item in (arguments or {}).items()})

    @property
    def dtype(self) -> Any:
        """Element type, of the array or tensor."""
        dtype = self.spec.dtype
        if dtype is None:
            return self.get().dtype
        return dtype.numpy if self.kind == "numpy" else torch_dtype(dtype) if self.kind == "torch" else dtype

    @property
    def ndim(self) -> Any:
        """Number of dimensions, of the array or tensor."""
        if self.spec.ndim is None or self.kind == "tensor":
            return self.get().ndim  # a method of dalify's tensors
        return self.spec.ndim


def lazy_value(call: Call, output: int) -> LazyValue:
    """Return the lazy value of an output of a call."""
    return (LazyBatch if call.kind == "batch" else LazySample)(call, output)
