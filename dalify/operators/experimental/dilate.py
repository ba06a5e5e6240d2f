"""Dilate bright regions: each pixel becomes the maximum under a mask."""

from __future__ import annotations

import numpy as np

from dalify.data.device_samples import DeviceSamples
from dalify.parameter_groups.morphology import Mask
from dalify.registry import Spec, operator


@operator
def dilate(x: Spec, /, *, mask: Mask) -> Spec:
    """Dilate bright regions: each pixel becomes the maximum value under a rectangular mask, per channel.

    Args:
        x: images HW, HWC or CHW, or sequences FHWC or FCHW, of any type but 64-bit integers.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        DTypeError: 64-bit integers.
        ArgumentValueError: an unknown border mode, an empty mask, or an anchor outside the mask.

    Example:
        >>> masks = fn.experimental.dilate(masks, mask_size=[5, 5])  # doctest: +SKIP
    """
    return mask.result(x)


@dilate.cpu
def _(out: np.ndarray, x: np.ndarray, *, mask: Mask, spec: Spec) -> None:
    mask.fill(out, x, spec, largest=True)


@dilate.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, mask: Mask, spec: Spec) -> None:
    mask.fill_samples(out, x, spec, largest=True)
