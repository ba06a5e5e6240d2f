"""Convert images between RGB, BGR, gray and YCbCr."""

from __future__ import annotations

import cv2
import numpy as np

from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.wording import counted
from dalify.data import DALIDataType, DALIImageType, DeviceSamples, Samples
from dalify.kernels.arrays.joined import copy_samples
from dalify.kernels.images.color_matrix import apply_matrix, apply_matrix_torch
from dalify.kernels.images.frames import visual_layout
from dalify.registry import Spec, operator

_LAYOUTS = ("FDHWC", "FHWC", "DHWC", "HWC")
_CHANNELS = {DALIImageType.RGB: 3, DALIImageType.BGR: 3, DALIImageType.GRAY: 1, DALIImageType.YCbCr: 3}

# ITU-R BT.601 with studio range: luma 16 … 235, chroma 16 … 240. Gray is the full-range luma 0 … 255.
_LUMA = np.array([0.299, 0.587, 0.114])
_TO_BLUE = (np.array([0.0, 0.0, 1.0]) - _LUMA) * 112 / 255 / (1 - 0.114)
_TO_RED = (np.array([1.0, 0.0, 0.0]) - _LUMA) * 112 / 255 / (1 - 0.299)
_RGB_TO_YCBCR = np.stack([_LUMA * 219 / 255, _TO_BLUE, _TO_RED])
_YCBCR_TO_RGB = np.linalg.inv(_RGB_TO_YCBCR)
_BLACK_LEVEL = np.array([16.0, 128.0, 128.0])
_IDENTITY = (np.eye(3), np.zeros(3))
_SWAP = (np.eye(3)[::-1], np.zeros(3))

# Conversions that OpenCV implements with integers, faster than a matrix. It does not support studio range.
_OPENCV_CODES = {
    (DALIImageType.RGB, DALIImageType.BGR): cv2.COLOR_RGB2BGR,
    (DALIImageType.BGR, DALIImageType.RGB): cv2.COLOR_BGR2RGB,
    (DALIImageType.RGB, DALIImageType.GRAY): cv2.COLOR_RGB2GRAY,
    (DALIImageType.BGR, DALIImageType.GRAY): cv2.COLOR_BGR2GRAY,
    (DALIImageType.GRAY, DALIImageType.RGB): cv2.COLOR_GRAY2RGB,
    (DALIImageType.GRAY, DALIImageType.BGR): cv2.COLOR_GRAY2BGR,
}

_Step = tuple[np.ndarray, np.ndarray]
# A conversion from each space to RGB, and from RGB to each space; both are composed.
_TO_RGB: dict[DALIImageType, _Step] = {
    DALIImageType.RGB: _IDENTITY,
    DALIImageType.BGR: _SWAP,
    DALIImageType.GRAY: (np.ones((3, 1)), np.zeros(3)),
    DALIImageType.YCbCr: (_YCBCR_TO_RGB, -_YCBCR_TO_RGB @ _BLACK_LEVEL),
}
_FROM_RGB: dict[DALIImageType, _Step] = {
    DALIImageType.RGB: _IDENTITY,
    DALIImageType.BGR: _SWAP,
    DALIImageType.GRAY: (_LUMA[None], np.zeros(1)),
    DALIImageType.YCbCr: (_RGB_TO_YCBCR, _BLACK_LEVEL),
}


def _conversion(source: DALIImageType, target: DALIImageType) -> _Step:
    """Return matrix and offset of the whole conversion; intermediate values are not clipped."""
    first, first_offset = _TO_RGB[source]
    second, second_offset = _FROM_RGB[target]
    return (second @ first).astype(np.float32), (second @ first_offset + second_offset).astype(np.float32)


_CONVERSIONS = {(source, target): _conversion(source, target) for source in _CHANNELS for target in _CHANNELS}


@operator
def color_space_conversion(x: Spec, /, *, image_type: DALIImageType, output_type: DALIImageType) -> Spec:
    """Convert images between RGB, BGR, gray and YCbCr.

    YCbCr follows ITU-R BT.601 in studio range (luma 16 to 235, chroma 16 to 240); gray is full-range luma, 0 to 255.
    Converting a space to itself copies.

    Args:
        x: uint8 images HWC, sequences FHWC or volumes DHWC, FDHWC; 3 channels, or 1 for gray.
        image_type: color space of the input: RGB, BGR, GRAY or YCbCr.
        output_type: color space of the result.

    Returns:
        uint8, same layout, 3 channels, or 1 for gray.

    Raises:
        LayoutError: the layout is not supported.
        DTypeError: elements are not uint8.
        ShapeError: the number of channels does not match `image_type`.
        ArgumentValueError: an image type is ANY_DATA, which is not a color space.

    Example:
        >>> gray = fn.color_space_conversion(
        ...     images, image_type=types.RGB, output_type=types.GRAY
        ... )  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, _LAYOUTS))
    if image_type not in _CHANNELS or output_type not in _CHANNELS:
        raise ArgumentValueError("image_type and output_type must be RGB, BGR, GRAY or YCbCr, not ANY_DATA.")
    x.check_dtype(DALIDataType.UINT8)
    if x.shape is None:
        return x
    if x.shape[-1] != _CHANNELS[image_type]:
        raise ShapeError(
            f"image_type {image_type.name} requires {counted(_CHANNELS[image_type], 'channel')}; the image has "
            f"{x.shape[-1]}."
        )
    return x.replace(shape=(*x.shape[:-1], _CHANNELS[output_type]))


@color_space_conversion.cpu_samples
def _(out: Samples, x: Samples, *, image_type: DALIImageType, output_type: DALIImageType) -> None:
    if image_type == output_type:
        copy_samples(out, x)
        return
    code = _OPENCV_CODES.get((image_type, output_type))
    if code is None:
        matrix, offset = _CONVERSIONS[image_type, output_type]
        apply_matrix(out, x, np.repeat(matrix[None], len(x), 0), np.repeat(offset[None], len(x), 0))
        return
    for target, source in zip(_images(out).arrays(), _images(x).arrays(), strict=True):
        cv2.cvtColor(source, code, dst=target)


def _images(x: Samples) -> Samples:
    """Return the frames and slices of each sample below each other, as one image [H, W, C]."""
    if x.ndim == 3:
        return x
    rows = x.shapes[:, :-2].prod(1)
    return x.reshaped(np.stack([rows, x.extents(-2), x.extents(-1)], axis=1))


@color_space_conversion.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, image_type: DALIImageType, output_type: DALIImageType) -> None:
    matrix, offset = _CONVERSIONS[image_type, output_type]
    apply_matrix_torch(out, x, np.repeat(matrix[None], len(x), 0), np.repeat(offset[None], len(x), 0))
