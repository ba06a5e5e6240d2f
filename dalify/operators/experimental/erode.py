"""Erode bright regions: each pixel becomes the minimum under a mask."""

from __future__ import annotations

import numpy as np

from dalify.data.device_samples import DeviceSamples
from dalify.kernels.images.image_planes import filter_layout
from dalify.kernels.images.morphology import min_max_filter_cpu, min_max_filter_samples_torch, morphology_spec
from dalify.registry import PerSample, Spec, Vectors, operator


@operator
def erode(
    x: Spec,
    /,
    *,
    anchor: PerSample[int | list[int]] = [-1, -1],  # noqa: B006 -- the signature is the schema; the list is never mutated
    border_mode: str = "constant",
    iterations: int = 1,
    mask_size: PerSample[int | list[int]] = [3, 3],  # noqa: B006
) -> Spec:
    """Erode bright regions: each pixel becomes the minimum value under a rectangular mask, per channel.

    Args:
        x: images HW, HWC or CHW, or sequences FHWC or FCHW, of any type but 64-bit integers.
        anchor: position of the output pixel in the mask, x and y from 0; -1: the center, rounded up for even sizes.
            Can be per frame.
        border_mode: values outside the image: "constant" (ignored), "replicate" (aa|abcd), "reflect"
            (ba|abcd), "reflect_101" (cb|abcd) or "wrap" (cd|abcd).
        iterations: number of times the operation is applied; 0 copies the images.
        mask_size: width and height, or one number for both. Can be per frame.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        DTypeError: 64-bit integers.
        ArgumentValueError: an unknown border mode, an empty mask, or an anchor outside the mask.

    Example:
        >>> masks = fn.experimental.erode(masks, mask_size=[5, 5])  # doctest: +SKIP
    """
    return morphology_spec(x, border_mode, iterations)


@erode.cpu
def _(
    out: np.ndarray,
    x: np.ndarray,
    *,
    anchor: Vectors,
    border_mode: str,
    iterations: int,
    mask_size: Vectors,
    spec: Spec,
) -> None:
    min_max_filter_cpu(out, x, filter_layout(spec), mask_size, anchor, border_mode, iterations, False)


@erode.gpu_samples
def _(
    out: DeviceSamples,
    x: DeviceSamples,
    *,
    anchor: Vectors,
    border_mode: str,
    iterations: int,
    mask_size: Vectors,
    spec: Spec,
) -> None:
    min_max_filter_samples_torch(out, x, filter_layout(spec), mask_size, anchor, border_mode, iterations, False)
