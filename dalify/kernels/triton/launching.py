"""What the hosts of all Triton kernels need: arrays on the device, element types, and the division into tiles."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from dalify.base.optional import torch
from dalify.kernels.triton.package import tl

__all__ = ["blocks_of", "element_type", "launch", "power_of_two", "uploaded"]

_ALIGNMENT_BYTES = 16
_TILE_ELEMENTS = 1024

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


def element_type(dtype: np.dtype[Any]) -> Any:
    """Return Triton's type for a NumPy element type."""
    return _ELEMENT_TYPES[str(dtype)]


def uploaded(device: Any, *arrays: np.ndarray) -> list[Any]:
    """Copy arrays to a device in one transfer that the host does not wait for.

    Args:
        device: torch device.
        arrays: of int32, int64 or float32.

    Returns:
        one tensor for each.
    """
    sizes = [-(-array.nbytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES for array in arrays]
    packed = torch.empty(sum(sizes) + _ALIGNMENT_BYTES, dtype=torch.uint8, pin_memory=device.type != "cpu")
    view = packed.numpy()
    at = 0
    places: list[tuple[int, int]] = []
    for array, size in zip(arrays, sizes, strict=True):
        view[at : at + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        places.append((at, array.nbytes))
        at += size
    copied = packed.to(device, non_blocking=True)
    return [
        copied[start : start + size].view(getattr(torch, str(array.dtype)))
        for array, (start, size) in zip(arrays, places, strict=True)
    ]


def power_of_two(value: int) -> int:
    """Return the smallest power of two that is not below a positive number."""
    return 1 << (max(value, 1) - 1).bit_length()


def blocks_of(rows: np.ndarray, columns: np.ndarray) -> tuple[int, int, int]:
    """Return the rows and columns of a tile, and the largest number of tiles of a sample.

    Args:
        rows: int64 [N], rows of each sample.
        columns: int64 [N], elements of a row, which are next to each other in memory.
    """
    width = min(power_of_two(int(columns.max(initial=1))), _TILE_ELEMENTS)
    height = min(power_of_two(int(rows.max(initial=1))), _TILE_ELEMENTS // width)
    tiles = -(-rows // height) * -(-columns // width)
    return height, width, int(tiles.max(initial=1))


def launch(kernel: Any, device: Any, programs: int, *arguments: Any, **constants: Any) -> None:
    """Launch a kernel on the current stream of a device.

    Args:
        kernel: compiled by Triton.
        device: torch device.
        programs: size of the grid.
        arguments: tensors and numbers.
        constants: numbers and types that the kernel is compiled for.
    """
    if not programs:
        return
    place: AbstractContextManager[Any] = nullcontext() if device.type == "cpu" else torch.cuda.device(device)
    with place:
        # Products and sums are rounded as on the CPU, so that the same pixels are selected.
        kernel[(programs,)](*arguments, **constants, enable_fp_fusion=False)
