"""What users hold of a call that was put off: it is computed when its data are asked for.

A lazy value stands for what the call would have returned, a tensor list, an array or a tensor, and has all of its
methods. What the graph tells already (element type, dimensions, layout, number of samples) computes nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from dalify.base.errors import ArgumentTypeError, ConditionError
from dalify.base.optional import torch
from dalify.base.source_line import SourceLine
from dalify.data import Batch, torch_dtype
from dalify.deferred.calls import Call, copied, kind_of_result
from dalify.eager.functions import use
from dalify.eager.values import Deferred, shown
from dalify.graph import Expression
from dalify.registry import catalogue

__all__ = ["LazyBatch", "LazySample", "LazyValue", "lazy_value"]

_PROTOCOLS = ("__array_interface__", "__cuda_array_interface__", "__dlpack__", "__dlpack_device__")


class LazyValue(Deferred):
    """The result of a call that was put off.

    Args:
        call: the call.
        output: which of its results.
    """

    __slots__ = ("__weakref__", "_shown", "call", "output")

    def __init__(self, call: Call, output: int) -> None:
        self.call = call
        self.output = output
        self._shown: Any = None
        call.values.append(ref(self))

    @property
    def is_computed(self) -> bool:
        """Whether the data are there."""
        return self.call.results[self.output] is not None

    @property
    def is_known(self) -> bool:
        """Whether element type, dimensions and layout are known before anything is computed."""
        return self.call.template.specs[self.output].is_known

    @property
    def is_shown(self) -> bool:
        """Whether the user has the data, and may change them."""
        return self._shown is not None

    def computed(self) -> Batch:
        """Return the data; compute them where that was not done yet."""
        if not self.is_computed:
            self.call.tape.compute(self.call, self.output)
        result = self.call.results[self.output]
        assert result is not None, "dalify bug: a result that was not kept"
        return result

    def get(self) -> Any:
        """Return what the call would have returned at once: a tensor list, an array or a tensor."""
        if self._shown is None:
            result = self.computed()
            if self.call.waiting_readers():  # they read it as it is now
                result = copied(result)
            self._shown = shown(result, kind_of_result(self.call, self.output))
        return self._shown

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the data on the host, as one array; of a batch ``[N, ...]``.

        Raises:
            ShapeError: the samples have different shapes.
        """
        value = self.get()
        value = value.as_cpu() if hasattr(value, "as_cpu") else value.cpu() if hasattr(value, "cpu") else value
        return np.asarray(value)

    def torch(self) -> Any:
        """Return the data as one tensor of torch, where they lie; of a batch ``[N, ...]``.

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
        """Return what numpy asks for."""
        return np.array(self.numpy(), dtype, copy=copy)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the data."""
        if name.startswith("__") and name not in _PROTOCOLS:
            raise AttributeError(name)  # what Python asks for, as when it copies
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
        """Copy and pickle the data: nobody else can compute them."""
        return _itself, (self.get(),)


def _itself(value: Any) -> Any:
    return value


class LazyBatch(LazyValue, Expression):
    """A batch that is computed when it is needed: it stands for a tensor list.

    Arithmetic and comparisons are operators like others, with the rules of pipelines.
    """

    __slots__ = ()
    is_batch = True

    def _apply(self, function: str, *operands: Any) -> Any:
        return use(catalogue.find("arithmetic"), operands, {"function": function})

    def node(self) -> NoReturn:
        """Refuse to be a value of a graph that is being defined.

        Raises:
            ArgumentTypeError: always.
        """
        raise ArgumentTypeError(
            "a batch of lazy mode is no graph value.",
            line=SourceLine.capture(),
            hint="Use dalify.eager instead of dalify.fn and dalify.math, or give the data: batch.get().",
        )

    def __len__(self) -> int:
        """Return the number of samples."""
        return self.call.use.count

    @property
    def dtype(self) -> Any:
        """Element type."""
        spec = self.call.template.specs[self.output]
        return spec.dtype if spec.dtype is not None else self.get().dtype

    @property
    def device(self) -> str:
        """``cpu`` or ``gpu``."""
        return self.call.template.specs[self.output].device

    def ndim(self) -> int:
        """Return the number of dimensions of a sample."""
        ndim = self.call.template.specs[self.output].ndim
        return ndim if ndim is not None else self.get().ndim()

    def layout(self) -> str:
        """Return the layout of a sample, or ""."""
        if self._shown is None and self.is_known:  # who has seen it may have set another one
            return self.call.template.specs[self.output].layout or ""
        return self.get().layout()

    def __bool__(self) -> NoReturn:
        raise ConditionError(
            "a batch has no truth value: it may differ from sample to sample.",
            line=SourceLine.capture(),
            hint="Write batch.numpy().all(), or use a pipeline, whose `if` takes each sample its own way.",
        )


def _both_ways(function: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def method(self: LazyValue, other: Any) -> Any:
        return function(self.get(), _now(other))

    def reflected(self: LazyValue, other: Any) -> Any:
        return function(_now(other), self.get())

    return method, reflected


def _unary(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def method(self: LazyValue) -> Any:
        return function(self.get())

    return method


def _now(item: Any) -> Any:
    return item.get() if isinstance(item, Deferred) else item


class LazySample(LazyValue):
    """A single sample that is computed when it is needed: it stands for an array or a tensor.

    What arrays can do beside operators, arithmetic above all, they do here when it is written, and by the rules of
    numpy or torch.
    """

    __slots__ = ()

    __add__, __radd__ = _both_ways(operator.add)
    __sub__, __rsub__ = _both_ways(operator.sub)
    __mul__, __rmul__ = _both_ways(operator.mul)
    __truediv__, __rtruediv__ = _both_ways(operator.truediv)
    __floordiv__, __rfloordiv__ = _both_ways(operator.floordiv)
    __mod__, __rmod__ = _both_ways(operator.mod)
    __pow__, __rpow__ = _both_ways(operator.pow)
    __matmul__, __rmatmul__ = _both_ways(operator.matmul)
    __lshift__, __rlshift__ = _both_ways(operator.lshift)
    __rshift__, __rrshift__ = _both_ways(operator.rshift)
    __and__, __rand__ = _both_ways(operator.and_)
    __or__, __ror__ = _both_ways(operator.or_)
    __xor__, __rxor__ = _both_ways(operator.xor)
    __lt__, __gt__ = _both_ways(operator.lt)
    __le__, __ge__ = _both_ways(operator.le)
    __eq__ = _both_ways(operator.eq)[0]
    __ne__ = _both_ways(operator.ne)[0]
    # In place: the name then stands for the array.
    __iadd__ = _both_ways(operator.iadd)[0]
    __isub__ = _both_ways(operator.isub)[0]
    __imul__ = _both_ways(operator.imul)[0]
    __itruediv__ = _both_ways(operator.itruediv)[0]
    __iand__ = _both_ways(operator.iand)[0]
    __ior__ = _both_ways(operator.ior)[0]
    __neg__ = _unary(operator.neg)
    __pos__ = _unary(operator.pos)
    __invert__ = _unary(operator.invert)
    __abs__ = _unary(operator.abs)
    __len__ = _unary(len)
    __bool__ = _unary(bool)
    __int__ = _unary(int)
    __float__ = _unary(float)
    __index__ = _unary(operator.index)
    __hash__ = object.__hash__

    def __setitem__(self, index: Any, value: Any) -> None:
        self.get()[index] = _now(value)

    @classmethod
    def __torch_function__(cls, function: Any, _types: Any, given: Any = (), arguments: Any = None) -> Any:
        """Take part in functions of torch with the data."""
        positional = [[_now(one) for one in item] if isinstance(item, (list, tuple)) else _now(item) for item in given]
        return function(*positional, **{name: _now(item) for name, item in (arguments or {}).items()})

    @property
    def dtype(self) -> Any:
        """Element type, as the array or the tensor tells it."""
        dtype = self.call.template.specs[self.output].dtype
        kind = kind_of_result(self.call, self.output)
        if dtype is None:
            return self.get().dtype
        return dtype.numpy if kind == "numpy" else torch_dtype(dtype) if kind == "torch" else dtype

    @property
    def ndim(self) -> Any:
        """Number of dimensions, as the array or the tensor tells it."""
        ndim = self.call.template.specs[self.output].ndim
        if ndim is None or self.call.use.kind == "tensor":
            return self.get().ndim  # a method of dalify's tensors
        return ndim


def lazy_value(call: Call, output: int) -> LazyValue:
    """Return what users get for an output of a call that was put off."""
    return (LazyBatch if call.use.kind == "batch" else LazySample)(call, output)
