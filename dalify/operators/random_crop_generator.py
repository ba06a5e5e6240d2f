"""Choose random crop windows for images of given shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import DTypeError, ShapeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.kernels.random_crop_window import check_random_crop, draws_per_sample, random_crop_windows
from dalify.registry import Spec, operator


@operator(random=True, outputs=2)
def random_crop_generator(
    shape: Spec,
    /,
    *,
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006 -- signatures are schemas, nobody changes this list
    random_aspect_ratio: list[float] = [3 / 4, 4 / 3],  # noqa: B006 -- DALI shows 1.333333, and takes 4:3
) -> tuple[Spec, Spec]:
    """Choose random crop windows of random area and aspect ratio, for images of given shapes.

    The rule is that of `fn.random_resized_crop`: the area is uniform, the logarithm of the ratio too, and so is the
    place.

    Args:
        shape: integers [2] or [3]: height and width of an image, and perhaps its channels.
        num_attempts: windows that are tried before the largest that is allowed is taken.
        random_area: least and largest part of the image's area.
        random_aspect_ratio: least and largest width / height.

    Returns:
        anchor (y, x) and shape (height, width) of the window, int32 [2] each.

    Raises:
        ArgumentValueError: a range that cannot be meant.
        ShapeError: neither 2 nor 3 numbers, or an image without pixels.
        DTypeError: the numbers are no integers.

    Example:
        >>> anchor, shape = fn.random_crop_generator(fn.peek_image_shape(files))  # doctest: +SKIP
        >>> images = fn.decoders.image_slice(files, start=anchor, shape=shape, axes=[0, 1])  # doctest: +SKIP
    """
    check_random_crop(random_area, random_aspect_ratio, num_attempts)
    if shape.dtype is None or not shape.dtype.is_integer:
        raise DTypeError(f"the shape of an image is integers; got {shape.dtype!s}.")
    if shape.ndim != 1 or (shape.shape is not None and shape.shape[0] not in (2, 3)):
        form = "" if shape.shape is None else f" of shape {shape.shape}"
        raise ShapeError(
            f"the shape of an image is 2 or 3 numbers, height and width first; got {shape.ndim}-D data{form}.",
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
    # A search with early exits over a few numbers: quicker on the host than one launch for each attempt.
    windows = _windows(shape.cpu().numpy(), draws, num_attempts, random_area, random_aspect_ratio)
    found = torch.as_tensor(windows, device=anchor.device)
    anchor.copy_(found[:, :2])
    extents.copy_(found[:, 2:])
