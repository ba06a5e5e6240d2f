"""Combine affine transforms."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ShapeError
from dalify.base.optional import torch
from dalify.kernels.arrays.wide_torch import widened
from dalify.kernels.images.affine import compose, fill_joined
from dalify.kernels.images.affine_rules import matrix_spec
from dalify.registry import Spec, on_groups, operator


@operator
def combine(input_0: Spec, input_1: Spec, /, *inputs: Spec, reverse_order: bool = False) -> Spec:
    """Combine affine transforms: the result applies all of them in sequence.

    Args:
        input_0: transforms [k, k + 1], or sequences [F, k, k + 1].
        input_1: transforms of the same kind.
        inputs: further transforms.
        reverse_order: False: the first is applied first; True: the last one.

    Returns:
        float32 [k, k + 1], layout "**"; with a sequence among them [F, k, k + 1], layout "F**".

    Raises:
        DTypeError: a transform is not float32.
        ShapeError: transforms of different dimensions or numbers of frames.

    Example:
        >>> both = fn.transforms.combine(
        ...     fn.transforms.scale(scale=[2, 2]), fn.transforms.rotation(angle=30)
        ... )  # doctest: +SKIP
    """
    specs = [matrix_spec(x, None) for x in (input_0, input_1, *inputs)]
    shapes = {spec.shape[-2:] for spec in specs if spec.shape is not None}
    frames = {spec.shape[0] for spec in specs if spec.shape is not None and spec.ndim == 3}
    if len(shapes) > 1 or len(frames) > 1:
        raise ShapeError(f"transforms must have the same shape; got {', '.join(str(s.shape) for s in specs)}.")
    return next((spec for spec in specs if spec.ndim == 3), specs[0])


@combine.cpu_samples
@on_groups()
def _(out: np.ndarray, *inputs: np.ndarray, reverse_order: bool) -> None:
    fill_joined(out, inputs[::-1] if reverse_order else inputs)


@combine.gpu_samples
@on_groups()
def _(out: torch.Tensor, *inputs: torch.Tensor, reverse_order: bool) -> None:
    result: torch.Tensor | None = None
    for x in inputs[::-1] if reverse_order else inputs:
        maps = widened(x)
        if maps.ndim < out.ndim:
            maps = maps[:, None]
        result = maps if result is None else compose(maps, result)
    assert result is not None, "dalify bug: no transforms"
    out.copy_(result)
