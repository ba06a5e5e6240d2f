"""Displace pixels randomly."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.data import DALIInterpType, DeviceSamples, Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.displacement_warp import displace_cpu, keep_unmasked_torch
from dalify.kernels.images.warp_torch import sample_torch
from dalify.kernels.random.philox import SampleDraws, fill_words
from dalify.parameter_groups.displacement import Displacement
from dalify.registry import Spec, operator

_HALF_WORD = 0xFFFF
_STEP = np.float32(2.0**-16)


@operator(random=True)
def jitter(
    x: Spec,
    /,
    *,
    displacement: Displacement,
    nDegree: int = 2,  # noqa: N803 -- DALI's name
) -> Spec:
    """Displace every pixel randomly: ``out(x, y) = in(x + u, y + v)``.

    u and v are uniform in [-nDegree / 2, nDegree / 2], in steps of nDegree / 65536, and drawn per pixel. All channels
    of a pixel move together.

    Args:
        x: images HWC of any numeric type.
        nDegree: side of the square, in pixels, from which a pixel takes its value.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        ArgumentValueError: an unsupported `interp_type`, or a negative `nDegree`.

    Example:
        >>> images = fn.jitter(images, nDegree=4)  # doctest: +SKIP
    """
    if nDegree < 0:
        raise ArgumentValueError(f"nDegree must not be negative; got {nDegree}.")
    return displacement.result(x)


@njit(nogil=True, cache=True)
def _fill_points(x_at, y_at, shapes, like, reach, samples, first_block, k0, k1, step):
    half = np.float32(0.5)
    for n in range(len(x_at)):
        height, width = shapes[n, 0], shapes[n, 1]
        points_x, points_y = array_at(x_at[n], (height, width), like), array_at(y_at[n], (height, width), like)
        words = np.empty((1, height * width), np.uint32)
        fill_words(words, samples[n : n + 1], first_block, k0, k1, step)
        for y in range(height):
            for i in range(width):
                word = words[0, y * width + i]
                low, high = np.float32(word & np.uint32(_HALF_WORD)), np.float32(word >> np.uint32(16))
                points_x[y, i] = (np.float32(i) + half) + (low * _STEP - half) * reach
                points_y[y, i] = (np.float32(y) + half) + (high * _STEP - half) * reach


@jitter.cpu_samples
def _(
    out: Samples,
    x: Samples,
    *,
    displacement: Displacement,
    nDegree: int,  # noqa: N803
    draws: SampleDraws,
) -> None:
    def fill(points_x: Samples, points_y: Samples, numbers: np.ndarray) -> None:
        stream = draws.draws.numba_arguments(draws.samples[numbers])
        _fill_points(points_x.addresses, *points_y.compiled, np.float32(nDegree), *stream)

    mask: Any = displacement.mask
    displace_cpu(out, x, fill, mask, displacement.interp_type, displacement.fill_value, is_shared=False)


@jitter.gpu_samples
def _(
    out: DeviceSamples,
    x: DeviceSamples,
    *,
    displacement: Displacement,
    nDegree: int,  # noqa: N803
    draws: SampleDraws,
) -> None:
    mask: Any = displacement.mask
    nearest = displacement.interp_type == DALIInterpType.INTERP_NN
    _displace(out, x, mask=mask, nearest=nearest, fill_value=displacement.fill_value, reach=nDegree, draws=draws)


@on_padded
def _displace(
    out: torch.Tensor,
    x: torch.Tensor,
    *,
    mask: np.ndarray,
    nearest: bool,
    fill_value: float,
    reach: int,
    draws: SampleDraws,
    extents: np.ndarray,
) -> None:
    height, width = x.shape[1:3]
    rows = torch.arange(height, device=x.device)[:, None]
    columns = torch.arange(width, device=x.device)
    # The random number of a pixel depends on its index in the sample without padding.
    count = int(extents[:, :2].prod(1).max(initial=0))
    pixels = rows * uploaded(extents[:, 1], x.device).reshape(-1, 1, 1) + columns
    index = pixels.clamp(max=max(count - 1, 0)).reshape(len(x), -1)
    words = draws.bits_torch(count, x.device).gather(1, index).reshape(pixels.shape)
    moved_x = columns.float() + 0.5 + ((words & _HALF_WORD).float() * float(_STEP) - 0.5) * reach
    moved_y = rows.float() + 0.5 + ((words >> 16).float() * float(_STEP) - 0.5) * reach
    sample_torch(out, x, [moved_y, moved_x], nearest=nearest, fill_value=fill_value, extents=extents[:, :2])
    keep_unmasked_torch(out, x, mask)
