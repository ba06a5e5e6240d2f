"""Copies samples and fills regions of the copies, in one launch."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.upload_torch import uploaded_together
from dalify.kernels.dispatch import UnsupportedError
from dalify.kernels.triton.conversion import saturated
from dalify.kernels.triton.launching import element_type, launch
from dalify.kernels.triton.package import constexpr, tl, triton

_AXES = 4
_BLOCK = 1024


@triton.jit(do_not_specialize=["tiles"])
def _erase(
    out_at,
    x_at,
    extents,
    regions,
    fill,
    tiles,
    count,
    fills,
    X: constexpr,
    CHANNEL_AXIS: constexpr,
    BLOCK: constexpr,
):
    program = tl.program_id(0)
    n = program // tiles
    element = (program % tiles) * BLOCK + tl.arange(0, BLOCK)
    e = extents + n * 4
    size1, size2, size3 = tl.load(e + 1), tl.load(e + 2), tl.load(e + 3)
    is_there = element < tl.load(e) * size1 * size2 * size3
    i3 = element % size3
    i2 = (element // size3) % size2
    i1 = (element // size3 // size2) % size1
    i0 = element // size3 // size2 // size1
    inside = element < 0
    for k in range(0, count):
        r = regions + (n * count + k) * 8
        within = (i0 >= tl.load(r)) & (i0 < tl.load(r + 4)) & (i1 >= tl.load(r + 1)) & (i1 < tl.load(r + 5))
        within = within & (i2 >= tl.load(r + 2)) & (i2 < tl.load(r + 6))
        inside = inside | (within & (i3 >= tl.load(r + 3)) & (i3 < tl.load(r + 7)))
    if CHANNEL_AXIS == 0:
        channel = i0
    elif CHANNEL_AXIS == 1:
        channel = i1
    elif CHANNEL_AXIS == 2:
        channel = i2
    else:
        channel = i3
    value = tl.load(tl.load(x_at + n).to(tl.pointer_type(X)) + element, mask=is_there & ~inside, other=0)
    filled = tl.load(fill + n * fills + tl.minimum(channel, fills - 1), mask=is_there & inside, other=0)
    value = tl.where(inside, saturated(filled, X), value)
    tl.store(tl.load(out_at + n).to(tl.pointer_type(X)) + element, value, mask=is_there)


def erase_regions(
    out: DeviceSamples, x: DeviceSamples, regions: np.ndarray, fill_values: np.ndarray, channel_axis: int
) -> None:
    """`dalify.kernels.images.erase_torch.erase_samples_torch` by a Triton kernel.

    Raises:
        UnsupportedError: more than four axes, or 32-bit integers.
    """
    missing = _AXES - x.ndim
    if missing < 0 or x.dtype == torch.int32:
        raise UnsupportedError
    sizes = x.shapes.prod(1)
    tiles = -(-int(sizes.max(initial=0)) // _BLOCK)
    if not tiles:
        return
    extents = np.ones((len(x), _AXES), np.int32)
    extents[:, missing:] = x.shapes
    # Missing axes have the extent 1.
    whole = np.zeros((len(x), regions.shape[1], 2, _AXES), np.int32)
    whole[:, :, 1] = 1
    whole[..., missing:] = regions
    described = uploaded_together(x.device, out.addresses, x.addresses, extents, whole, fill_values.astype(np.float32))
    launch(
        _erase, x.device, len(x) * tiles, *described, tiles, regions.shape[1], fill_values.shape[1],
        X=element_type(x.dtype), CHANNEL_AXIS=channel_axis + missing, BLOCK=_BLOCK,
    )  # fmt: skip
