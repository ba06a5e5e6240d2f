"""Concatenates samples along an axis in one launch.

A part consists of rows, which are adjacent in the part, and have a fixed distance in the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.upload_torch import uploaded_together
from dalify.kernels.triton.launching import blocks_of, element_type, launch
from dalify.kernels.triton.package import constexpr, tl, triton


@triton.jit(do_not_specialize=["tiles"])
def _joined(
    out_at,
    x_at,
    geometry,
    tiles,
    ELEMENT: constexpr,
    ROWS: constexpr,
    COLUMNS: constexpr,
):
    program = tl.program_id(0)
    piece = program // tiles
    tile = program % tiles
    g = geometry + piece.to(tl.int64) * 3
    rows, columns, distance = tl.load(g), tl.load(g + 1), tl.load(g + 2)
    across = (columns + COLUMNS - 1) // COLUMNS
    row = (tile // across) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tile % across) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    is_there = (row < rows) & (column < columns)
    x = tl.load(x_at + piece).to(tl.pointer_type(ELEMENT))
    out = tl.load(out_at + piece).to(tl.pointer_type(ELEMENT))
    value = tl.load(x + row * columns + column, mask=is_there, other=0)
    tl.store(out + row * distance + column, value, mask=is_there)


def join_samples(out: DeviceSamples, parts: Sequence[DeviceSamples], axis: int) -> None:
    """`dalify.kernels.arrays.windows_torch.joined_samples_torch` by a Triton kernel."""
    full = [part for part in parts if part.ndim == out.ndim and part.shapes.all(1).any()]
    if not full:
        return
    count = len(out)
    geometry = np.empty((len(full), count, 3), np.int64)  # rows, elements of a row, distance of rows in the result
    begins = np.empty((len(full), count), np.int64)
    geometry[:, :, 2] = out.shapes[:, axis:].prod(1)
    begin = np.zeros(count, np.int64)
    for number, part in enumerate(full):
        has_elements = part.shapes.all(1)
        # A sample without elements has no rows; the length of a row is 1, because it is a divisor.
        geometry[number, :, 0] = np.where(has_elements, part.shapes[:, :axis].prod(1), 0)
        geometry[number, :, 1] = np.where(has_elements, part.shapes[:, axis:].prod(1), 1)
        begins[number] = begin
        begin += np.where(has_elements, geometry[number, :, 1], 0)
    targets = out.addresses + begins * out.block.element_size()
    sources = np.stack([part.addresses for part in full])
    rows, columns, tiles = blocks_of(geometry[:, :, 0].reshape(-1), geometry[:, :, 1].reshape(-1))
    arrays = uploaded_together(out.device, targets, sources, geometry.astype(np.int32))
    launch(
        _joined, out.device, len(full) * count * tiles, *arrays, tiles, ELEMENT=element_type(out.dtype), ROWS=rows,
        COLUMNS=columns,
    )  # fmt: skip
