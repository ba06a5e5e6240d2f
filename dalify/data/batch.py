"""Samples that travel together through the executor.

Uniform samples are one dense array with a leading sample axis, so that a kernel handles them in one call; samples of
different shapes are a list. Both look alike from outside. The public ``TensorListCPU`` and ``TensorListGPU`` wrap a
Batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType, from_numpy
from dalify.data.spec import Spec

__all__ = ["Array", "Batch", "array_dtype", "stack_samples", "torch_dtype"]

# A numpy array on the CPU, a torch tensor on the GPU. The two have too little of their typing in common for a protocol.
Array = Any

_TORCH_NAMES = {
    "torch.uint8": DALIDataType.UINT8,
    "torch.uint16": DALIDataType.UINT16,
    "torch.uint32": DALIDataType.UINT32,
    "torch.uint64": DALIDataType.UINT64,
    "torch.int8": DALIDataType.INT8,
    "torch.int16": DALIDataType.INT16,
    "torch.int32": DALIDataType.INT32,
    "torch.int64": DALIDataType.INT64,
    "torch.float16": DALIDataType.FLOAT16,
    "torch.float32": DALIDataType.FLOAT,
    "torch.float64": DALIDataType.FLOAT64,
    "torch.bool": DALIDataType.BOOL,
    "torch.bfloat16": DALIDataType.BFLOAT16,
}


def torch_dtype(dtype: DALIDataType) -> Any:
    """Return torch's name of an element type."""
    return getattr(torch, str(dtype.numpy))


def array_dtype(array: Array) -> DALIDataType:
    """Return DALI's name of the element type of a numpy array or torch tensor.

    Raises:
        DTypeError: DALI has no such type.
    """
    if isinstance(array, np.ndarray):
        return from_numpy(array.dtype)
    found = _TORCH_NAMES.get(str(array.dtype))
    return found if found is not None else from_numpy(str(array.dtype).removeprefix("torch."))


class Batch:
    """N samples: dense (``[N, ...]``) or a list of N arrays.

    Args:
        dense: all samples in one array, or None.
        samples: one array per sample, or None when dense is given.
        layout: letters of a sample's dimensions, or "".
        device: ``"cpu"`` (numpy arrays) or ``"gpu"`` (torch tensors).
        origins: where each sample came from (file name, key), or None.
        dtype: element type; needed only for a batch of no samples.

    Attributes:
        is_lasting: the memory of the samples is theirs alone and no scratch memory; set by who made it.
    """

    __slots__ = ("_samples", "dense", "device", "dtype", "is_lasting", "layout", "origins")

    def __init__(
        self,
        dense: Array | None = None,
        samples: list[Array] | None = None,
        layout: str = "",
        device: str = "cpu",
        origins: Sequence[str | None] | None = None,
        dtype: DALIDataType | None = None,
    ) -> None:
        self.dense = dense
        self._samples = samples
        self.layout = layout
        self.device = device
        self.origins = origins
        self.is_lasting = False
        if dtype is None:
            if dense is not None:
                dtype = array_dtype(dense)
            elif samples:
                dtype = array_dtype(samples[0])
            else:
                dtype = DALIDataType.NO_TYPE
        self.dtype = dtype

    @property
    def samples(self) -> list[Array]:
        """The samples one by one; views of the dense array where there is one."""
        if self._samples is None:
            self._samples = list(self.dense) if self.dense is not None and self.dense.ndim > 1 else self._scalars()
        return self._samples

    def _scalars(self) -> list[Array]:
        # Iterating a 1-D numpy array yields scalars that are no arrays; slices of no dimensions are wanted.
        dense = self.dense
        assert dense is not None, "dalify bug: a batch of nothing"
        return [dense[index, ...] for index in range(len(dense))]

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.dense) if self.dense is not None else len(self._samples or ())

    @property
    def ndim(self) -> int | None:
        """Dimensions of one sample; None for a list of no samples."""
        if self.dense is not None:
            return self.dense.ndim - 1
        return self._samples[0].ndim if self._samples else None

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shape of each sample."""
        if self.dense is not None:
            return [tuple(self.dense.shape[1:])] * len(self.dense)
        return [tuple(sample.shape) for sample in self.samples]

    def spec_of(self, index: int) -> Spec:
        """Return what is known about one sample."""
        shape = self.dense.shape[1:] if self.dense is not None else self.samples[index].shape
        return Spec(self.dtype, None, self.layout, tuple(shape), self.device)

    def slice(self, start: int, stop: int) -> Batch:
        """Return the samples ``start`` to ``stop`` as views."""
        origins = None if self.origins is None else self.origins[start:stop]
        if self.dense is not None:
            return Batch(self.dense[start:stop], None, self.layout, self.device, origins, self.dtype)
        return Batch(None, self.samples[start:stop], self.layout, self.device, origins, self.dtype)

    def take(self, indices: np.ndarray[Any, Any]) -> Batch:
        """Return the samples at the given positions: copies of dense ones, the same arrays of listed ones."""
        origins = None if self.origins is None else [self.origins[index] for index in indices]
        if self.dense is not None:
            at = torch.as_tensor(indices, device=self.dense.device) if self.device == "gpu" else indices
            return Batch(self.dense[at], None, self.layout, self.device, origins, self.dtype)
        samples = self.samples
        picked = [samples[index] for index in indices]
        return Batch(None, picked, self.layout, self.device, origins, self.dtype)

    def with_layout(self, layout: str) -> Batch:
        """Return the same data under another layout."""
        return Batch(self.dense, self._samples, layout, self.device, self.origins, self.dtype)

    def with_origins(self, origins: Sequence[str | None] | None) -> Batch:
        """Return the same data with another note of where they came from."""
        return Batch(self.dense, self._samples, self.layout, self.device, origins, self.dtype)

    def __repr__(self) -> str:
        """Return counts and types, no data."""
        form = f"dense {tuple(self.dense.shape)}" if self.dense is not None else f"{len(self)} samples"
        return f"Batch({self.device} {self.dtype.name} {self.layout!r} {form})"


def stack_samples(samples: list[Array], out: Array | None = None) -> Array:
    """Stack equally shaped samples into one dense array, into ``out`` where given."""
    if isinstance(samples[0], np.ndarray):
        if out is None:
            out = np.empty((len(samples), *samples[0].shape), samples[0].dtype)
        # Row assignment is faster than np.stack, which makes a view with a new axis of every sample first.
        for row, sample in enumerate(samples):
            out[row] = sample
        return out
    return torch.stack(samples, out=out) if out is not None else torch.stack(samples)
