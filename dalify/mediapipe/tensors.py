"""Outputs of ``MediaPipe.run``: whole batches, on the CPU or the accelerator.

Programs use these objects directly: ``images.as_cpu().as_nparray()``.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from dalify.base.optional import torch
from dalify.data import TensorListCPU, TensorListGPU

Array = np.ndarray[Any, Any]


def _rounded_to_bfloat16(array: Array) -> Array:
    """Round float32 to the nearest bfloat16, halves to even, and keep the type."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(array), array, rounded.view(np.float32))


class DeviceTensor:
    """One output of a batch.

    It owns its memory and remains valid when further batches are requested.

    Args:
        output: output of the pipeline.
        batched: whether there is one value per sample; otherwise the value of the first sample is used for the batch.
        is_bfloat16: round to bfloat16. NumPy has no bfloat16: ``as_nparray`` returns float32, ``torch`` bfloat16.
        valid: number of samples that are not padding of the last batch of an epoch.
    """

    def __init__(
        self, output: TensorListCPU | TensorListGPU, *, batched: bool, is_bfloat16: bool, valid: int | None
    ) -> None:
        self.device = "cpu" if isinstance(output, TensorListCPU) else "hpu"
        self._is_bfloat16 = is_bfloat16
        self.valid = valid
        self._data: Any  # a NumPy array on the CPU, otherwise a torch tensor
        if isinstance(output, TensorListCPU):
            array = np.asarray(output.as_tensor()) if batched else np.asarray(output.at(0))
            self._data = _rounded_to_bfloat16(array) if is_bfloat16 else array
        else:
            tensor = torch.from_dlpack(output.as_tensor() if batched else output[0])
            self._data = tensor.bfloat16() if is_bfloat16 else tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in NumPy's order."""
        return tuple(self._data.shape)

    @property
    def fcd_shape(self) -> tuple[int, ...]:
        """Extents in MediaPipe's order: fastest-varying dimension first."""
        return self.shape[::-1]

    @property
    def dtype(self) -> str:
        """Data type, as in ``media_types.dtype``."""
        if self._is_bfloat16:
            return "bfloat16"
        return str(self._data.dtype).removeprefix("torch.")

    @property
    def dev_addr(self) -> int:
        """Address of the first element."""
        return self._data.ctypes.data if isinstance(self._data, np.ndarray) else self._data.data_ptr()

    def as_cpu(self) -> DeviceTensor:
        """Return the batch in CPU memory."""
        if isinstance(self._data, np.ndarray):
            return self
        host = copy.copy(self)
        host.device = "cpu"
        host._data = (self._data.float() if self._is_bfloat16 else self._data).cpu().numpy()
        return host

    def as_nparray(self) -> Array:
        """Return the batch as a NumPy array; without a copy if it is in CPU memory."""
        return self.as_cpu()._data

    def torch(self) -> Any:
        """Return the batch as a torch tensor on its device; without a copy if possible."""
        data = self._data
        if not isinstance(data, np.ndarray):
            return data
        tensor = torch.from_numpy(data if data.flags.writeable and data.flags.c_contiguous else data.copy())
        return tensor.bfloat16() if self._is_bfloat16 else tensor

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the batch as a NumPy array."""
        return np.array(self.as_nparray(), dtype=dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        """Return the batch as a DLPack capsule."""
        return self.torch().__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.torch().__dlpack_device__()

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceTensor(shape={self.shape}, dtype={self.dtype}, device={self.device})"
