"""Displace pixels randomly."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIInterpType
from dalify.kernels.images.warp import sample_2d
from dalify.kernels.images.warp_torch import sample_torch
from dalify.kernels.random.philox import SampleDraws
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


@jitter.cpu
def _(
    out: np.ndarray,
    x: np.ndarray,
    *,
    displacement: Displacement,
    nDegree: int,  # noqa: N803
    draws: SampleDraws,
) -> None:
    height, width = x.shape[1:3]
    mask: Any = displacement.mask
    nearest, reach = displacement.interp_type == DALIInterpType.INTERP_NN, np.float32(nDegree)
    words = draws.bits(height * width)
    rows = np.arange(height, dtype=np.float32)[:, None] + np.float32(0.5)
    columns = np.arange(width, dtype=np.float32) + np.float32(0.5)
    points = np.empty((1, 2, height, width), np.float32)
    half = np.float32(0.5)
    for n in range(len(x)):
        if not mask[n]:
            out[n] = x[n]
            continue
        word = words[n].reshape(height, width)
        points[0, 0] = columns + ((word & _HALF_WORD).astype(np.float32) * _STEP - half) * reach
        points[0, 1] = rows + ((word >> 16).astype(np.float32) * _STEP - half) * reach
        sample_2d(out[n : n + 1], x[n : n + 1], points, nearest=nearest, fill_value=displacement.fill_value)


@jitter.gpu
def _(
    out: torch.Tensor,
    x: torch.Tensor,
    *,
    displacement: Displacement,
    nDegree: int,  # noqa: N803
    draws: SampleDraws,
) -> None:
    height, width = x.shape[1:3]
    words = draws.bits_torch(height * width, x.device).reshape(len(x), height, width)
    rows = torch.arange(height, device=x.device, dtype=torch.float32)[:, None] + 0.5
    columns = torch.arange(width, device=x.device, dtype=torch.float32) + 0.5
    moved_x = columns + ((words & _HALF_WORD).float() * float(_STEP) - 0.5) * nDegree
    moved_y = rows + ((words >> 16).float() * float(_STEP) - 0.5) * nDegree
    nearest = displacement.interp_type == DALIInterpType.INTERP_NN
    sample_torch(out, x, [moved_y, moved_x], nearest=nearest, fill=displacement.fill_value)
    mask: Any = displacement.mask
    if not mask.all():
        kept = torch.as_tensor(mask == 0, device=x.device)
        out[kept] = x[kept]
