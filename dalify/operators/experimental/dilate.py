"""Dilate bright regions: each pixel becomes the largest under a mask."""

from __future__ import annotations

from dalify.kernels.morphology import extreme_cpu, extreme_gpu, morphology_spec
from dalify.kernels.planes import filter_layout
from dalify.registry import PerSample, Spec, operator


@operator
def dilate(
    x: Spec,
    /,
    *,
    anchor: PerSample[int | list[int]] = [-1, -1],  # noqa: B006 -- signatures are schemas, nobody changes this list
    border_mode: str = "constant",
    iterations: int = 1,
    mask_size: PerSample[int | list[int]] = [3, 3],  # noqa: B006
) -> Spec:
    """Dilate bright regions: each pixel becomes the largest value under a rectangular mask, for each channel by itself.

    Args:
        x: images HW, HWC or CHW, or sequences FHWC or FCHW, of any type but 64-bit integers.
        anchor: which pixel of the mask lies on the output's, x and y from 0; -1: the middle, rounded up for even sizes;
            per frame, too.
        border_mode: what lies outside: "constant" (nothing that could win), "replicate" (aa|abcd), "reflect"
            (ba|abcd), "reflect_101" (cb|abcd) or "wrap" (cd|abcd).
        iterations: several widen the mask, as if by its size less 1 for each more; 0 leaves images as they are.
        mask_size: width and height; one for both; per frame, too.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: another layout.
        DTypeError: integers of 64 bits.
        ArgumentValueError: an unknown border, a mask without pixels, or an anchor outside of it.

    Example:
        >>> masks = fn.experimental.dilate(masks, mask_size=[5, 5])  # doctest: +SKIP
    """
    return morphology_spec(x, border_mode, iterations)


@dilate.cpu
def _(out, x, *, anchor, border_mode, iterations, mask_size, spec):
    extreme_cpu(out, x, filter_layout(spec), mask_size, anchor, border_mode, iterations, True)


@dilate.gpu
def _(out, x, *, anchor, border_mode, iterations, mask_size, spec):
    extreme_gpu(out, x, filter_layout(spec), mask_size, anchor, border_mode, iterations, True)
