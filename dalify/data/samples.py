"""The samples of a chunk for compiled code: the address and the shape of each.

Samples of different shapes need neither a copy into one array nor one call each: a kernel is called once and iterates
over them (`dalify.base.array_at`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dalify.base.optional import LazyModule
from dalify.base.small_arrays import counting, rows_at, with_column
from dalify.data.batch import Batch, block_offsets, contiguous_strides, repeated_shape

if TYPE_CHECKING:
    from dalify.base import addresses as compiled
else:
    # This imports numba, which pipelines without compiled kernels do not need.
    compiled = LazyModule("dalify.base.addresses", "addresses of samples")

_BYTES = np.dtype(np.uint8)
Integers = np.ndarray[Any, np.dtype[np.int64]]


class Samples:
    """N arrays of one element type and number of dimensions, C-contiguous unless there are strides.

    Args:
        addresses: address of the first element of each sample, int64 ``[N]``; None: the addresses in the array `owner`.
        shapes: shapes, int64 ``[N, ndim]``; None: the shape of the array `owner`, ``[N, ...]``.
        dtype: element type.
        owner: object that keeps the memory alive.
        strides: of windows of larger arrays: elements from one index of an axis to the next, int64 ``[N, ndim]``; only
            the functions for such windows support it.

    Attributes:
        like: an empty array, which carries the element type for compiled code.
        array: the samples as one array ``[N, ...]`` if they are one; each is contiguous. Otherwise None.
        dense: `array` if it is contiguous, otherwise None.
        table: tables precomputed from the shapes, or None.
        parsed: the result of the function `parse` of a decoder on the device, or None.
    """

    __slots__ = (
        "_is_uniform",
        "_owner",
        "addresses",
        "array",
        "dense",
        "dtype",
        "like",
        "parsed",
        "shapes",
        "strides",
        "table",
    )

    # Many kernels use only `array`. Its addresses and shapes are computed when they are first read, by `__getattr__`.
    addresses: Integers
    shapes: Integers

    def __init__(
        self,
        addresses: Integers | None,
        shapes: Integers | None,
        dtype: np.dtype[Any],
        owner: Any,
        strides: Integers | None = None,
    ) -> None:
        if addresses is not None:
            self.addresses = addresses
        if shapes is not None:
            self.shapes = shapes
        self.dtype = dtype
        self.strides = strides
        self.like = _likes[dtype]
        self._owner = owner
        is_array = addresses is None
        self._is_uniform: bool | None = True if is_array else None
        self.array: np.ndarray[Any, Any] | None = owner if is_array else None
        self.dense = self.array
        self.table: Any = None
        self.parsed: Any = None

    @staticmethod
    def of_batch(batch: Batch) -> Samples:
        """Return the samples of a batch; non-contiguous samples are copied at each call."""
        if batch.compiled is not None:
            return batch.compiled
        dtype = batch.dtype.numpy
        if batch.dense is not None:
            dense = batch.dense
            found = Samples(None, None, dense.dtype, dense)
            if not dense.flags.c_contiguous:
                if not (len(dense) and dense[0].flags.c_contiguous):
                    return Samples.of_dense(np.ascontiguousarray(dense))
                found.dense = None  # a repeated constant, or a part of each sample
        elif batch.ragged is not None:
            block, offsets, shapes = batch.ragged
            found = Samples(_in_block(offsets, block), shapes, dtype, block)
        else:
            samples = batch.samples
            is_copied = not all(sample.flags.c_contiguous for sample in samples)
            if is_copied:
                samples = [np.ascontiguousarray(sample) for sample in samples]
            addresses = np.array([sample.__array_interface__["data"][0] for sample in samples], np.int64)
            found = Samples(addresses, batch.shape_array(), dtype, samples)
            if is_copied:
                return found
        batch.compiled = found
        return found

    @staticmethod
    def of_dense(dense: np.ndarray[Any, Any]) -> Samples:
        """Return the samples of a C-contiguous array ``[N, ...]``."""
        return Samples(None, None, dense.dtype, dense)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Integers:
            """Compute and set an attribute when it is first read; later reads do not call this function."""
            if name == "shapes":
                self.shapes = _repeated(len(self.array), self.array.shape[1:])
                return self.shapes
            if name == "addresses":
                dense = self.array
                offsets = _multiples(len(dense), dense.strides[0] if len(dense) else 0)
                # Each sample is contiguous, but perhaps not the array. A compiled function gets the address, because
                # NumPy takes longer. The attribute is set last, because other threads read the attribute of a shared
                # constant.
                self.addresses = _in_block(offsets, dense[:1].reshape(-1).view(_BYTES))
                return self.addresses
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @staticmethod
    def empty(shapes: Integers, dtype: np.dtype[Any]) -> Samples:
        """Return uninitialized samples of the given shapes, int64 ``[N, ndim]``, in one block."""
        offsets, size_bytes = block_offsets(shapes, dtype.itemsize)
        block = np.empty(size_bytes, np.uint8)
        return Samples(_in_block(offsets, block), shapes, dtype, block)

    def converted(self, dtype: np.dtype[Any]) -> Samples:
        """Return copies converted to another element type."""
        if self.dense is not None:
            return Samples.of_dense(self.dense.astype(dtype))
        found = Samples.empty(self.shapes, dtype)
        for target, values in zip(found.arrays(), self.arrays(), strict=True):
            target[...] = values
        return found

    def __len__(self) -> int:
        return len(self.addresses if self.array is None else self.array)

    @property
    def compiled(self) -> tuple[Integers, Integers, np.ndarray[Any, Any]]:
        """Arguments of compiled functions: addresses, shapes, and an empty array of the element type."""
        return self.addresses, self.shapes, self.like

    @property
    def ndim(self) -> int:
        """Number of dimensions of one sample."""
        return self.shapes.shape[1] if self.array is None else self.array.ndim - 1

    @property
    def is_uniform(self) -> bool:
        """Whether all shapes are equal."""
        found = self._is_uniform
        if found is None:
            is_known = self.table is not None
            found = self.table.is_uniform if is_known else len(self) < 2 or bool((self.shapes == self.shapes[0]).all())
            self._is_uniform = found
        return found

    def extents(self, axis: int) -> Integers:
        """Return one extent of all samples, int64 ``[N]``."""
        return self.shapes[:, axis]

    def reshaped(self, shapes: Integers) -> Samples:
        """Return the same elements with other shapes, int64 ``[N, ...]``."""
        return Samples(self.addresses, shapes, self.dtype, self._owner)

    def steps(self) -> Integers:
        """Return the strides of contiguous samples, in elements, int64 ``[N, ndim]``. Do not modify them."""
        if self.array is None:
            return contiguous_strides(self.shapes)
        return _repeated_steps(len(self.array), self.array.shape[1:])

    def window(self, start: Integers, extents: Integers) -> Samples:
        """Return a window of each sample, without a copy.

        Args:
            start: start of the windows, int64 ``[N, ndim]``.
            extents: extents of the windows, int64 ``[N, ndim]``; they are inside the samples.
        """
        shapes = self.shapes
        addresses, strides = np.empty(len(shapes), np.int64), np.empty(shapes.shape, np.int64)
        compiled.fill_windows(addresses, strides, self.addresses, shapes, start, self.dtype.itemsize)
        return Samples(addresses, extents, self.dtype, self._owner, strides)

    def with_axis(self, axis: int) -> Samples:
        """Return the same elements with a new axis of extent 1 at the given position."""
        if self.dense is not None:
            shape = list(self.dense.shape)
            shape.insert(axis + 1, 1)
            found = Samples.of_dense(self.dense.reshape(shape))
            found.addresses = self.addresses
            return found
        found = self.reshaped(with_column(self.shapes, axis, 1))
        found._is_uniform = self._is_uniform
        return found

    def folded(self, axes: int) -> tuple[Samples, Integers | None]:
        """Return each index along the first axes as a separate sample, without a copy.

        Returns:
            the parts, and int64 ``[parts]``: the sample of each part; None without axes.
        """
        if axes == 0:
            return self, None
        counts = self.shapes[:, :axes].prod(1)
        strides = None
        if self.strides is None:
            size_bytes = self.shapes[:, axes:].prod(1) * self.dtype.itemsize
        else:
            assert axes == 1, "dalify bug: windows have one folded axis"
            size_bytes = self.strides[:, 0] * self.dtype.itemsize
        owner = np.repeat(counting(len(self)), counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        part = counting(len(owner)) - first
        addresses = self.addresses[owner] + part * size_bytes[owner]
        if self.strides is not None:
            strides = rows_at(self.strides[:, axes:], owner)
        return Samples(addresses, rows_at(self.shapes[:, axes:], owner), self.dtype, self._owner, strides), owner

    def take(self, indices: Integers) -> Samples:
        """Return some of the samples, without a copy."""
        strides = None if self.strides is None else rows_at(self.strides, indices)
        return Samples(self.addresses[indices], rows_at(self.shapes, indices), self.dtype, self._owner, strides)

    def arrays(self) -> Iterator[np.ndarray[Any, Any]]:
        """Yield the samples as arrays, for code that is not compiled. They do not keep their memory alive."""
        dense = self.dense
        if dense is not None and dense.ndim > 1 and dense.flags.writeable:
            yield from dense
            return
        dtype, steps = self.dtype, None
        if self.strides is not None:
            steps = (self.strides * dtype.itemsize).tolist()
        for n, (address, shape) in enumerate(zip(self.addresses.tolist(), self.shapes.tolist(), strict=True)):
            if 0 in shape:
                yield np.empty(shape, dtype)
            elif steps is None:
                yield np.ndarray(shape, dtype, _MEMORY, address - 1)
            else:
                yield np.ndarray(shape, dtype, _MEMORY, address - 1, steps[n])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle None: addresses are only valid in this process, and for this copy of the memory."""
        return type(None), ()

    def __repr__(self) -> str:
        """Return counts and types without data."""
        return f"Samples({len(self)} of {self.ndim} dimensions, {self.dtype})"


def _in_block(offsets: Integers, block: np.ndarray[Any, Any]) -> Integers:
    """Return the addresses of samples from their offsets in a block."""
    addresses = np.empty(len(offsets), np.int64)
    compiled.fill_in_block(addresses, offsets, block)
    return addresses


# Most chunks have the same number of samples, and some results the same shape. The arrays are never modified.
@lru_cache(64)
def _multiples(count: int, step: int) -> Integers:
    return counting(count) * step


_repeated = lru_cache(64)(repeated_shape)


@lru_cache(64)
def _repeated_steps(count: int, shape: tuple[int, ...]) -> Integers:
    return contiguous_strides(_repeated(count, shape))


class _Memory:
    """The memory of this process as bytes, with NumPy's array interface."""

    # NumPy takes address 0 as no memory.
    __array_interface__: ClassVar[dict[str, Any]] = {
        "version": 3, "data": (1, False), "shape": (sys.maxsize - 1,), "typestr": "|u1",
    }  # fmt: skip


# NumPy creates an array in a buffer in a third of the time that it takes at an address.
_MEMORY = np.asarray(_Memory())


class _Likes(dict[np.dtype[Any], np.ndarray[Any, Any]]):
    """An empty array of each element type."""

    def __missing__(self, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        self[dtype] = found = np.empty(0, dtype)
        return found


_likes = _Likes()
