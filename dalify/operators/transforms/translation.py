"""Create the transform that translates points."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.data import Batch
from dalify.kernels.images.affine import fill_transforms, fill_translations
from dalify.kernels.images.affine_rules import matrix_spec, result_shape
from dalify.registry import VARIES_BY_FRAME, PerFrame, Spec, Vectors, on_groups, operator


@operator
def translation(x: Spec | None = None, /, *, offset: PerFrame[list[float]], reverse_order: bool = False) -> Spec:
    """Create the transform that translates points.

    ``out = in + offset``.

    Args:
        x: transforms [k, k + 1] to apply the new one to, or sequences [F, k, k + 1]; by default none.
        offset: k values.
        reverse_order: False: `x` is applied first, then the new transform; True: the reverse.

    Returns:
        float32 [k, k + 1], layout "**"; [F, k, k + 1], layout "F**", if `x` is a sequence or an argument has one
        value per frame (``fn.per_frame``).

    Raises:
        DTypeError: a transform is not float32.
        ShapeError: `x` has a different number of dimensions.

    Example:
        >>> move = fn.transforms.translation(offset=[10, -5])  # doctest: +SKIP
    """
    return matrix_spec(x, len(offset) if isinstance(offset, tuple) else None, VARIES_BY_FRAME in (offset,))


@translation.prepare
def _(x: Batch | None, *, offset: Vectors) -> dict[str, Any]:
    return result_shape(x, None if isinstance(offset, list) else offset.shape[-1], offset)


@translation.cpu_samples
@translation.gpu_samples
@on_groups()
def _(out: Any, x: Any, *, offset: np.ndarray, reverse_order: bool) -> None:
    fill_transforms(out, x, reverse_order, fill_translations, offset)
