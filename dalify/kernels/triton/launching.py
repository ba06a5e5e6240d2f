"""Host functions for all Triton kernels: element types, the division into tiles, and the launch."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from dalify.base.optional import torch
from dalify.data.dtypes import from_numpy
from dalify.kernels.dispatch import UnsupportedError
from dalify.kernels.triton.package import tl

_TILE_ELEMENTS = 1024
# Maximum numbers of programs. On ROCm, programs have 256 threads, and a launch must have less than 2**32 threads.
_MAX_PROGRAMS = 2**31 - 1
_MAX_PROGRAMS_ROCM = 2**24 - 1

# Triton's interpreter replaces functions of its modules while it runs a kernel, so only one thread may use it.
_interpreting = threading.RLock()

_ELEMENT_TYPES = {
    "uint8": tl.uint8,
    "int8": tl.int8,
    "uint16": tl.uint16,
    "int16": tl.int16,
    "int32": tl.int32,
    "float16": tl.float16,
    "bfloat16": tl.bfloat16,
    "float32": tl.float32,
}


def element_type(dtype: Any) -> Any:
    """Return Triton's type for an element type of torch."""
    return _ELEMENT_TYPES[str(dtype).removeprefix("torch.")]


def numpy_type(dtype: Any) -> np.dtype[Any]:
    """Return NumPy's type for an element type of torch."""
    return from_numpy(str(dtype).removeprefix("torch.")).numpy


def power_of_two(value: int) -> int:
    """Return the smallest power of two that is not below a positive number."""
    return 1 << (max(value, 1) - 1).bit_length()


def blocks_of(rows: np.ndarray, columns: np.ndarray, elements: int = _TILE_ELEMENTS) -> tuple[int, int, int]:
    """Return the rows and columns of a tile, and the maximum number of tiles of a sample.

    Tiles depend only on the columns, because kernels are compiled for each shape of a tile.

    Args:
        rows: rows of each sample, int64 [N].
        columns: elements of a row, which are adjacent in memory, int64 [N].
        elements: maximum number of elements of a tile, a power of two.
    """
    width = min(power_of_two(int(columns.max(initial=1))), elements)
    height = elements // width
    tiles = -(-rows // height) * -(-columns // width)
    return height, width, int(tiles.max(initial=1))


def launch(kernel: Any, device: Any, programs: int, *arguments: Any, **constants: Any) -> None:
    """Launch a kernel on the current stream of a device.

    Args:
        kernel: compiled by Triton.
        device: torch device.
        programs: size of the grid.
        arguments: tensors and numbers.
        constants: numbers and types that the kernel is compiled for, and Triton's options, such as ``num_warps``.

    Raises:
        UnsupportedError: the grid is larger than the device supports.
    """
    if not programs:
        return
    if programs > (_MAX_PROGRAMS_ROCM if torch.version.hip else _MAX_PROGRAMS):
        raise UnsupportedError
    place: AbstractContextManager[Any] = _interpreting if device.type == "cpu" else torch.cuda.device(device)
    with place:
        # Products and sums are rounded as on the CPU, so that the same pixels are selected.
        kernel[(programs,)](*arguments, **constants, enable_fp_fusion=False)
