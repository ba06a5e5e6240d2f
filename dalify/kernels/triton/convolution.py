"""Separable filters of `dalify.kernels.images.convolve`, with one launch for each axis of a chunk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.convert import saturate_cast_torch
from dalify.kernels.arrays.upload_torch import uploaded_together
from dalify.kernels.triton.conversion import saturated
from dalify.kernels.triton.launching import element_type, launch
from dalify.kernels.triton.package import constexpr, tl, triton

_BLOCK = 1024


@triton.jit(do_not_specialize=["tiles"])
def _along(
    out_at,
    x_at,
    described,
    weights,
    tiles,
    X: constexpr,
    OUT: constexpr,
    BLOCK: constexpr,
):
    program = tl.program_id(0)
    n = program // tiles
    size, extent = tl.load(described + n * 5), tl.load(described + n * 5 + 1)
    stride, taps = tl.load(described + n * 5 + 2), tl.load(described + n * 5 + 3)
    kernel = weights + tl.load(described + n * 5 + 4)
    element = (program % tiles) * BLOCK + tl.arange(0, BLOCK)
    is_there = element < size
    place = (element // stride) % extent
    x = tl.load(x_at + n).to(tl.pointer_type(X)) + element
    total = tl.full([BLOCK], 0.0, tl.float32)
    period = tl.maximum(2 * extent - 2, 1)
    for k in range(0, taps):
        # Reflected without repeating the edge pixel; several times for kernels wider than the axis.
        position = tl.abs(place + k - taps // 2) % period
        position = tl.where(position < extent, position, period - position)
        pixel = tl.load(x + (position - place) * stride, mask=is_there, other=0).to(tl.float32)
        total += tl.load(kernel + k) * pixel
    tl.store(tl.load(out_at + n).to(tl.pointer_type(OUT)) + element, saturated(total, OUT), mask=is_there)


def convolve_samples(
    out: DeviceSamples, x: DeviceSamples, kernels: Sequence[Sequence[np.ndarray]], first_axis: int
) -> None:
    """`dalify.kernels.images.convolve.convolve_samples` for samples on a device."""
    if not x.shapes.prod(1).any():
        return
    axes = len(kernels[0])
    for number in range(axes):
        weights = [np.asarray(of_sample[number], np.float32) for of_sample in kernels]
        target = out if number == axes - 1 else DeviceSamples.empty(x.shapes, torch.float32, x.device)
        _filter(target, x, weights, first_axis + number)
        x = target


def sum_convolutions(
    out: DeviceSamples, x: DeviceSamples, terms: Sequence[Sequence[Sequence[np.ndarray]]], first_axis: int
) -> None:
    """`dalify.kernels.images.convolve.sum_convolutions_torch`; borders are computed where they are read."""
    total = None
    for kernels in terms:
        block = torch.empty(out.block.shape, dtype=torch.float32, device=x.device)
        convolve_samples(DeviceSamples(block, out.offsets, out.shapes), x, kernels, first_axis)
        total = block if total is None else total.add_(block)
    assert total is not None, "dalify bug: a sum without terms"
    saturate_cast_torch(out.block, total)


def _filter(out: DeviceSamples, x: DeviceSamples, weights: list[np.ndarray], axis: int) -> None:
    sizes = x.shapes.prod(1)
    lengths = np.array([kernel.size for kernel in weights])
    described = np.stack(
        [sizes, x.extents(axis), x.shapes[:, axis + 1 :].prod(1), lengths, np.cumsum(lengths) - lengths], 1
    ).astype(np.int32)
    # Extents and strides of empty samples are divisors in the kernel, too.
    described[:, 1:3] = np.maximum(described[:, 1:3], 1)
    tiles = -(-int(sizes.max()) // _BLOCK)
    arrays = uploaded_together(x.device, out.addresses, x.addresses, described, np.concatenate(weights))
    launch(
        _along, x.device, len(x) * tiles, *arrays, tiles, X=element_type(x.dtype), OUT=element_type(out.dtype),
        BLOCK=_BLOCK,
    )  # fmt: skip
