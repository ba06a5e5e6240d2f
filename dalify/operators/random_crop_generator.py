"""Draw random crop windows for images of given shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import DTypeError, ShapeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.kernels.images.random_crop_window import check_random_crop, draws_per_sample, random_crop_windows
from dalify.registry import Spec, operator


@operator(random=True, outputs=2)
def random_crop_generator(
    shape: Spec,
    /,
    *,
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006 -- the signature is the schema; the list is never mutated
    random_aspect_ratio: list[float] = [3 / 4, 4 / 3],  # noqa: B006 -- DALI prints 1.333333 but uses 4:3
) -> tuple[Spec, Spec]:
    """Draw crop windows of random area, aspect ratio and position, for images of given shapes.

    As in `fn.random_resized_crop`, the area, the logarithm of the aspect ratio and the position are uniform.

    Args:
        shape: integers [2] or [3]: height and width of an image, and optionally channels.
        num_attempts: maximum number of windows drawn before the largest allowed one is used.
        random_area: minimum and maximum fraction of the image area.
        random_aspect_ratio: minimum and maximum of width / height.

    Returns:
        anchor (y, x) and shape (height, width) of the window, int32 [2] each.

    Raises:
        ArgumentValueError: an invalid range.
        ShapeError: neither 2 nor 3 numbers, or an empty image.
        DTypeError: the input is not integers.

    Example:
        >>> anchor, shape = fn.random_crop_generator(fn.peek_image_shape(files))  # doctest: +SKIP
        >>> images = fn.decoders.image_slice(files, start=anchor, shape=shape, axes=[0, 1])  # doctest: +SKIP
    """
    check_random_crop(random_area, random_aspect_ratio, num_attempts)
    if shape.dtype is None or not shape.dtype.is_integer:
        raise DTypeError(f"an image shape must be integers; got {shape.dtype!s}.")
    if shape.ndim != 1 or (shape.shape is not None and shape.shape[0] not in (2, 3)):
        form = "" if shape.shape is None else f" of shape {shape.shape}"
        raise ShapeError(
            f"an image shape must be 2 or 3 numbers, height and width first; got {shape.ndim}-D data{form}.",
            hint="Use images.shape(), or fn.peek_image_shape for encoded files.",
        )
    pair = Spec(DALIDataType.INT32, 1, "", (2,), shape.device)
    return pair, pair


def _windows(
    shape: np.ndarray, draws: Any, num_attempts: int, random_area: Any, random_aspect_ratio: Any
) -> np.ndarray:
    uniforms = draws.uniform(draws_per_sample(num_attempts))
    return random_crop_windows(shape[:, :2].astype(np.int64), uniforms, random_area, random_aspect_ratio)


@random_crop_generator.cpu
def _(anchor, extents, shape, *, draws, num_attempts, random_area, random_aspect_ratio):
    windows = _windows(shape, draws, num_attempts, random_area, random_aspect_ratio)
    anchor[:], extents[:] = windows[:, :2], windows[:, 2:]


@random_crop_generator.gpu
def _(anchor, extents, shape, *, draws, num_attempts, random_area, random_aspect_ratio):
    # A sequential search over a few numbers: faster on the CPU than one kernel launch per attempt.
    windows = _windows(shape.cpu().numpy(), draws, num_attempts, random_area, random_aspect_ratio)
    found = torch.as_tensor(windows, device=anchor.device)
    anchor.copy_(found[:, :2])
    extents.copy_(found[:, 2:])
