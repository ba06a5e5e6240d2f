"""Draw random crop windows for images of given shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import DTypeError, ShapeError
from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.parameter_groups.random_crop import RandomCrop
from dalify.registry import Spec, operator


@operator(alphabetical=True, random=True, outputs=2)
def random_crop_generator(shape: Spec, /, *, random_crop: RandomCrop) -> tuple[Spec, Spec]:
    """Draw crop windows of random area, aspect ratio and position, for images of given shapes.

    As in `fn.random_resized_crop`, the area, the logarithm of the aspect ratio and the position are uniform.

    Args:
        shape: integers [2] or [3]: height and width of an image, and optionally channels.

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
    random_crop.check()
    if shape.dtype is None or not shape.dtype.is_integer:
        raise DTypeError(f"an image shape must be integers; got {shape.dtype_text}.")
    if shape.ndim != 1 or (shape.shape is not None and shape.shape[0] not in (2, 3)):
        form = "" if shape.shape is None else f" of shape {shape.shape}"
        raise ShapeError(
            f"an image shape must be 2 or 3 numbers, height and width first; got {shape.ndim}-D data{form}.",
            hint="Use images.shape(), or fn.peek_image_shape for encoded files.",
        )
    pair = Spec(DALIDataType.INT32, 1, "", (2,), shape.device)
    return pair, pair


@random_crop_generator.cpu_samples
def _(anchor: Samples, extents: Samples, shape: Samples, *, draws: Any, random_crop: RandomCrop) -> None:
    assert anchor.dense is not None, "dalify bug: windows of different numbers of axes"
    assert extents.dense is not None, "dalify bug: windows of different numbers of axes"
    given = np.array([numbers[:2] for numbers in shape.arrays()] if shape.dense is None else shape.dense[:, :2])
    windows = random_crop.windows(given.astype(np.int64), draws)
    anchor.dense[:], extents.dense[:] = windows[:, :2], windows[:, 2:]


@random_crop_generator.gpu_samples
def _(
    anchor: DeviceSamples, extents: DeviceSamples, shape: DeviceSamples, *, draws: Any, random_crop: RandomCrop
) -> None:
    # A sequential search over a few numbers: faster on the CPU than one kernel launch per attempt.
    numbers = shape.block.cpu().numpy()[shape.offsets[:, None] + np.arange(2)]
    found = uploaded(random_crop.windows(numbers.astype(np.int64), draws), anchor.device)
    anchor.dense.copy_(found[:, :2])
    extents.dense.copy_(found[:, 2:])
