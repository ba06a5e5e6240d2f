"""Dilate bright regions: each pixel becomes the maximum under a mask."""

from __future__ import annotations

from dalify.parameter_groups.morphology import Mask
from dalify.registry import AnySamples, Spec, operator


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


@dilate.cpu_samples
@dilate.gpu_samples
def _(out: AnySamples, x: AnySamples, *, mask: Mask, spec: Spec) -> None:
    mask.fill(out, x, spec, largest=True)
