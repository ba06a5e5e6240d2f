"""``Batch``: a batch of samples, ``ndd.batch([image, image])``."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, IndexingError
from dalify.base.wording import counted
from dalify.data import Batch as Samples
from dalify.experimental.dynamic.arithmetic import Arithmetic, subscripted
from dalify.experimental.dynamic.calls import apply
from dalify.experimental.dynamic.conversion import constructor_data, sample_of, samples_of, stacked
from dalify.experimental.dynamic.tensor import Tensor


class Batch(Arithmetic):
    """Tensors of one element type, layout and number of dimensions, with any shapes.

    ``ndd.batch`` and ``ndd.as_batch`` create batches. Samples are selected by ``batch.select(0)`` and
    ``batch.tensors[0]``; ``batch.slice[0]`` indexes within each sample.

    Args:
        tensors: a list of data for tensors, a batch, or an array whose first axis is the samples.
        dtype: element type; by default the type of the first sample. Required for an empty list.
        device: device of the data; by default their current device.
        layout: letters of the dimensions of a sample.
        invocation_result: accepted but ignored.
        copy: copy the data; otherwise the memory is shared if possible.
    """

    __slots__ = ()
    __hash__ = None  # pyright: ignore[reportAssignmentType]
    __array_ufunc__ = None  # array + batch is a batch
    is_batch = True
    kind = "batch"

    def __init__(
        self,
        tensors: Any = None,
        dtype: Any = None,
        device: Any = None,
        layout: str | None = None,
        invocation_result: Any = None,
        copy: bool = False,
    ) -> None:
        self.set_data(*constructor_data(samples_of, tensors, dtype, device, layout, copy))

    @staticmethod
    def broadcast(sample: Any, batch_size: int, device: Any = None, dtype: Any = None) -> Batch:
        """Return a batch whose samples share the memory of one sample.

        Args:
            sample: data for a tensor.
            batch_size: number of samples.
            device: device of the samples.
            dtype: element type.

        Raises:
            ArgumentValueError: ``batch_size`` is negative.
        """
        if batch_size < 0:
            raise ArgumentValueError.here(f"batch_size must not be negative; got {batch_size}.")
        one, is_exposed = constructor_data(sample_of, sample, dtype, device, None, False)
        return Batch.from_data(
            Samples(None, one.samples * batch_size, one.layout, one.device, None, one.dtype), is_exposed
        )

    @property
    def batch_size(self) -> int:
        """Number of samples."""
        return len(self.batch)

    @property
    def shape(self) -> list[tuple[int, ...]]:
        """Shape of each sample."""
        return self.batch.shapes()

    @property
    def ndim(self) -> int:
        """Number of dimensions of a sample."""
        return self.batch.ndim or 0

    @property
    def tensors(self) -> Tensors:
        """The samples, as a list of tensors."""
        return Tensors(self)

    def select(self, sample_range: Any) -> Any:
        """Return some samples.

        Args:
            sample_range: an integer for a Tensor; a slice or a list of integers for a Batch of these samples.

        Raises:
            IndexingError: the sample does not exist.
            ArgumentTypeError: ``sample_range`` has another type.
        """
        count = self.batch_size
        if isinstance(sample_range, slice):
            chosen = list(range(count)[sample_range])
        elif isinstance(sample_range, (list, tuple, range)):
            chosen = [_place(index, count) for index in sample_range]
        else:
            place = _place(sample_range, count)
            return Tensor.from_data(self.batch.slice(place, place + 1), self.is_exposed)
        return Batch.from_data(self.batch.take(np.array(chosen, np.intp)), self.is_exposed)

    @property
    def slice(self) -> Slices:
        """Indexing within each sample: ``batch.slice[0]``, ``batch.slice[start:stop]`` with batches of numbers."""
        return Slices(self)

    def torch(self, copy: bool | None = None, pad: bool = False) -> Any:
        """Return all samples as one torch tensor, ``[N, ...]``.

        Args:
            copy: True: always copy; False: raise an error if a copy is needed.
            pad: pad samples of different shapes with zeros at the end.

        Raises:
            ShapeError: samples have different shapes, without ``pad``.
            ArgumentValueError: a copy is needed with ``copy=False``.
        """
        data = self.batch
        if copy is False and (data.dense is None or (isinstance(data.dense, np.ndarray) and _is_repeated(data.dense))):
            raise ArgumentValueError.here("the samples are not contiguous in memory.")
        return Tensor.from_data(self._joined(pad)).torch(copy=bool(copy))

    def _joined(self, pad: bool) -> Samples:
        """Return all samples as one tensor."""
        data = self.batch
        if pad and not data.is_uniform:
            return stacked(apply("pad", self).batch)
        return stacked(data)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    def __bool__(self) -> bool:
        """Raise an error: a batch has no single truth value.

        Raises:
            ArgumentTypeError: always.
        """
        raise ArgumentTypeError.here(
            "a batch has no single truth value, but one per sample.", hint="Use one sample: bool(batch.select(0))."
        )

    def __repr__(self) -> str:
        samples = [np.array2string(np.asarray(sample), prefix="    ") for sample in self.cpu().tensors]
        gap = "\n" * max(self.ndim, 1)
        shown = (", " if not self.ndim else f",{gap}    ").join(samples)
        layout = f'    layout="{self.layout}",\n' if self.layout else ""
        shapes = [str(shape) for shape in self.shape]
        if len(shapes) > 8:
            shapes[2:-2] = ["..."]
        facts = f'    dtype={self.dtype},\n{layout}    device="{self.device}",\n    num_samples={self.batch_size},\n'
        return f"Batch(\n    [{shown}],\n{facts}    shape=[{', '.join(shapes)}])"


class Tensors(Sequence[Tensor]):
    """The samples of a batch, as a list of tensors."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return self._batch.batch_size

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice | list[int]) -> Tensors: ...
    def __getitem__(self, index: Any) -> Any:
        found = self._batch.select(index)
        return found if isinstance(found, Tensor) else Tensors(found)

    def select(self, index: Any) -> Any:
        """Return one sample, or a list of some."""
        return self[index]

    def tolist(self) -> list[Tensor]:
        """Return the samples as a Python list."""
        return list(self)

    def as_batch(self) -> Batch:
        """Return the samples as a batch."""
        return self._batch


class Slices:
    """Indexing within the samples of a batch."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __getitem__(self, ranges: Any) -> Batch:
        """Return elements and slices of each sample."""
        return subscripted(self._batch, ranges)


def _place(index: Any, count: int) -> int:
    try:
        number = operator.index(index)
    except TypeError:
        number = None
    if number is None or isinstance(index, bool):
        raise ArgumentTypeError.here(f"samples are selected by a number, a slice or a list of numbers; got {index!r}.")
    if not -count <= number < count:
        raise IndexingError.here(f"index {number} is out of range for a batch of {counted(count, 'sample')}.")
    return number % count


def _is_repeated(dense: np.ndarray[Any, Any]) -> bool:
    return len(dense) > 1 and dense.strides[0] == 0
