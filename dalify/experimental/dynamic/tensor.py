"""``Tensor``: one array, ``ndd.tensor([1, 2, 3])``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentTypeError, DeviceError, ShapeError
from dalify.base.not_iterable import NotIterable
from dalify.base.wording import counted
from dalify.data import converted, shared_tensor
from dalify.experimental.dynamic.arithmetic import Arithmetic, subscripted
from dalify.experimental.dynamic.conversion import constructor_data, sample_of


class Tensor(Arithmetic, metaclass=NotIterable):
    """An array with layout and device; it may be a result that is computed at the first access.

    ``ndd.tensor`` and ``ndd.as_tensor`` create tensors.

    Args:
        data: an array, a tensor, a number, nested lists of numbers, or bytes.
        dtype: element type; by default the type of the data. Python's integers are ``int32``, floats ``float32``.
        device: device of the tensor; by default the device of the data.
        layout: letters of the dimensions.
        batch: a batch that contains the sample, instead of ``data``.
        index_in_batch: index of the sample in the batch.
        invocation_result: accepted but ignored.
        copy: copy the data; otherwise the memory is shared if possible.
    """

    __slots__ = ()
    __hash__ = None  # pyright: ignore[reportAssignmentType]
    is_batch = False
    kind = "tensor"

    def __init__(
        self,
        data: Any = None,
        dtype: Any = None,
        device: Any = None,
        layout: str | None = None,
        batch: Any = None,
        index_in_batch: int | None = None,
        invocation_result: Any = None,
        copy: bool = False,
    ) -> None:
        if batch is not None:
            if data is not None or index_in_batch is None:
                raise ArgumentTypeError.here("specify either data, or batch and index_in_batch.")
            data = batch.select(index_in_batch)
        self.set_data(*constructor_data(sample_of, data, dtype, device, layout, copy))

    @property
    def _array(self) -> Any:
        data = self.batch
        return data.dense[0, ...] if data.dense is not None else data.samples[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return tuple(self._array.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    def item(self) -> Any:
        """Return the only element as a Python number.

        Raises:
            ShapeError: the tensor does not have exactly one element.
        """
        if self.size != 1:
            raise ShapeError.here(f"a tensor with {counted(self.size, 'element')} cannot be converted to a number.")
        return self._array.item()

    def torch(self, copy: bool = False) -> Any:
        """Return a torch tensor, in the same memory unless ``copy`` is true."""
        result = shared_tensor(self._array)
        return result.clone() if copy else result

    def __getitem__(self, ranges: Any) -> Any:
        """Return elements and slices; a Batch if an index is one."""
        return subscripted(self, ranges)

    def __iter__(self) -> Iterator[Tensor]:
        """Yield the entries of the first axis.

        Raises:
            ShapeError: the tensor is a scalar.
        """
        if not self.ndim:
            raise ShapeError.here("a tensor without dimensions cannot be indexed or iterated.")
        return (self[index] for index in range(self.shape[0]))

    def __bool__(self) -> bool:
        """Return the truth value of the only element.

        Raises:
            ShapeError: the tensor does not have exactly one element.
        """
        return bool(self.item())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return a NumPy array in the same memory; a copy on request, or for another ``dtype``.

        Raises:
            DeviceError: the data are on the accelerator.
        """
        array = self._array
        if not isinstance(array, np.ndarray):
            raise DeviceError.here("the tensor is on the accelerator.", hint="Use tensor.cpu().")
        return converted(array, dtype, copy)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA array interface of the memory; AttributeError on other devices."""
        return self._array.__cuda_array_interface__

    def __dlpack__(self, stream: Any = None, dl_device: tuple[int, int] | None = None, **arguments: Any) -> Any:
        """Return a DLPack capsule of the same memory; see the protocol for the arguments."""
        array = self._array
        given = {"stream": stream, "dl_device": dl_device, **arguments}
        arguments = {name: value for name, value in given.items() if value is not None}
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            array = array.copy()  # DLPack does not support read-only memory
        return array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __repr__(self) -> str:
        shown = np.array2string(np.asarray(self.cpu()), prefix="    ")
        layout = f'    layout="{self.layout}",\n' if self.layout else ""
        facts = f'    dtype={self.dtype},\n{layout}    device="{self.device}",\n    shape={self.shape}'
        return f"Tensor(\n    {shown},\n{facts})"
