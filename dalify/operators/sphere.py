"""Distort images as if seen through a glass sphere."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.data.dtypes import DALIInterpType
from dalify.kernels.images.displacement_warp import displace_cpu, displace_gpu, displaced_spec, sphere_maps
from dalify.registry import PerSample, Spec, operator


@operator
def sphere(
    x: Spec,
    /,
    *,
    fill_value: float = 0.0,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: PerSample[int] = 1,
) -> Spec:
    """Distort images as if seen through a glass sphere.

    Source coordinates relative to the center are scaled by their normalized distance; corners read outside the image.

    Args:
        x: images HWC of any numeric type.
        fill_value: value outside the image.
        interp_type: INTERP_NN or INTERP_LINEAR.
        mask: 0 leaves the image unchanged.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        ArgumentValueError: an unsupported `interp_type`.

    Example:
        >>> images = fn.sphere(images)  # doctest: +SKIP
    """
    return displaced_spec(x, interp_type)


@sphere.cpu
def _(out: np.ndarray, x: np.ndarray, *, fill_value: float, interp_type: DALIInterpType, mask: np.ndarray) -> None:
    displace_cpu(out, x, sphere_maps(x.shape[1], x.shape[2]), mask, interp_type, fill_value)


@sphere.gpu
def _(out: torch.Tensor, x: torch.Tensor, *, fill_value: float, interp_type: DALIInterpType, mask: np.ndarray) -> None:
    displace_gpu(out, x, sphere_maps(x.shape[1], x.shape[2]), mask, interp_type, fill_value)
