"""Make the transform that moves points."""

from __future__ import annotations

import numpy as np

from dalify.kernels.affine import all_shapes, matrix_spec, vectors, write_joined
from dalify.registry import PerSample, Spec, operator


@operator
def translation(
    x: Spec | None = None,
    /,
    *,
    offset: PerSample[list[float]],
    reverse_order: bool = False,
) -> Spec:
    """Make the transform that moves points.

    ``out = in + offset``.

    Args:
        x: transforms [k, k + 1] to apply the new one to, or sequences [F, k, k + 1]; by default there is none.
        offset: k values; their number decides on k.
        reverse_order: False: `x` is applied first, then the new transform; True: the other way round.

    Returns:
        float32 [k, k + 1] on the CPU, layout "**"; for sequences [F, k, k + 1], layout "F**".

    Raises:
        ShapeError: `x` transforms points of other dimensions.

    Example:
        >>> move = fn.transforms.translation(offset=[10, -5])  # doctest: +SKIP
    """
    return matrix_spec(x, len(offset) if isinstance(offset, tuple) else None)


@translation.prepare
def _(x, *, offset, count):
    return {} if isinstance(offset, list) else all_shapes(x, offset.shape[-1], count)


@translation.cpu
def _(out, x, *, offset, reverse_order):
    size = out.shape[-2]
    moved = vectors(offset, len(out), size)
    identity = np.repeat(np.eye(size)[None], len(out), axis=0)
    write_joined(out, x, np.concatenate([identity, moved[:, :, None]], axis=2), reverse_order)
