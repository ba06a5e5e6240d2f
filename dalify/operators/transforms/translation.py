"""Make the transform that moves points."""

from __future__ import annotations

from dalify.kernels.affine import fill_on_device, fill_translations
from dalify.kernels.affine_rules import matrix_spec, result_shape
from dalify.registry import VARIES_BY_FRAME, PerFrame, Spec, operator


@operator
def translation(
    x: Spec | None = None,
    /,
    *,
    offset: PerFrame[list[float]],
    reverse_order: bool = False,
) -> Spec:
    """Make the transform that moves points.

    ``out = in + offset``.

    Args:
        x: transforms [k, k + 1] to apply the new one to, or sequences [F, k, k + 1]; by default there is none.
        offset: k values; their number decides on k.
        reverse_order: False: `x` is applied first, then the new transform; True: the other way round.

    Returns:
        float32 [k, k + 1], layout "**"; [F, k, k + 1], layout "F**", where `x` is a sequence or an argument has one
        value per frame (``fn.per_frame``).

    Raises:
        DTypeError: a transform that is not float32.
        ShapeError: `x` transforms points of other dimensions.

    Example:
        >>> move = fn.transforms.translation(offset=[10, -5])  # doctest: +SKIP
    """
    return matrix_spec(x, len(offset) if isinstance(offset, tuple) else None, VARIES_BY_FRAME in (offset,))


@translation.prepare
def _(x, *, offset):
    return result_shape(x, None if isinstance(offset, list) else offset.shape[-1], offset)


@translation.cpu
def _(out, x, *, offset, reverse_order):
    fill_translations(out, x, reverse_order, offset)


@translation.gpu
def _(out, x, *, offset, reverse_order):
    fill_on_device(out, x, reverse_order, lambda host: fill_translations(host, None, False, offset))
