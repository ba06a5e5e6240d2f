"""The augmentations of AutoAugment, RandAugment and TrivialAugment, with DALI's magnitudes.

Sources: Cubuk et al., arXiv:1805.09501 and arXiv:1909.13719; Müller and Hutter, arXiv:2103.10158; the
operations and their names follow Pillow's ImageEnhance and ImageOps. Images are uint8 HWC, sequences FHWC; all frames
of a sequence share one parameter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify import types
from dalify.auto_aug.core.decorator import augmentation
from dalify.graph import DataNode, apply

__all__ = [
    "auto_contrast",
    "brightness",
    "color",
    "contrast",
    "equalize",
    "identity",
    "invert",
    "poster_mask_uint8",
    "posterize",
    "rotate",
    "sharpness",
    "sharpness_kernel",
    "sharpness_kernel_shifted",
    "shear_x",
    "shear_y",
    "shift_enhance_range",
    "solarize",
    "solarize_add",
    "solarize_add_shift",
    "translate_x",
    "translate_x_no_shape",
    "translate_y",
    "translate_y_no_shape",
    "warp_x_param",
    "warp_y_param",
]

_SMOOTH = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / np.float32(13)  # Pillow's ImageFilter.SMOOTH
_UNCHANGED = np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]], np.float32)


def warp_x_param(magnitude: float) -> list[float]:
    """Return the vector along the width."""
    return [magnitude, 0.0]


def warp_y_param(magnitude: float) -> list[float]:
    """Return the vector along the height."""
    return [0.0, magnitude]


def shift_enhance_range(magnitude: float) -> float:
    """Return the factor of an enhancement: 1, the identity, plus the magnitude."""
    return 1.0 + magnitude


def sharpness_kernel(magnitude: float) -> np.ndarray:
    """Return the filter that blurs (-1), keeps the image (0) or sharpens (above)."""
    return sharpness_kernel_shifted(1.0 + magnitude)


def sharpness_kernel_shifted(magnitude: float) -> np.ndarray:
    """Return the filter that blurs (0), keeps the image (1) or sharpens (above)."""
    return (_SMOOTH * (1 - magnitude) + _UNCHANGED * magnitude).astype(np.float32)


def poster_mask_uint8(magnitude: float) -> np.ndarray:
    """Return a mask of the most significant bits of a byte; their number is the magnitude, rounded half to even."""
    bits = int(np.clip(np.round(magnitude), 1, 8))
    return np.array(256 - (1 << (8 - bits)), np.uint8)


def solarize_add_shift(shift: float) -> np.ndarray:
    """Return a magnitude as a byte, truncated and clipped."""
    return np.array(np.clip(shift, 0, 255), np.uint8)


def _warp(data: DataNode, matrix: DataNode, fill_value: int | None, interp_type: Any) -> DataNode:
    return apply("warp_affine", data, matrix=matrix, fill_value=fill_value, inverse_map=False, interp_type=interp_type)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_x_param)
def shear_x(data: DataNode, shear: DataNode, fill_value: int | None = 128, interp_type: Any = None) -> DataNode:
    """Shear along the width: shift each row in proportion to its distance from the top."""
    return _warp(data, apply("transforms.shear", shear=shear), fill_value, interp_type)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_y_param)
def shear_y(data: DataNode, shear: DataNode, fill_value: int | None = 128, interp_type: Any = None) -> DataNode:
    """Shear along the height: shift each column in proportion to its distance from the left."""
    return _warp(data, apply("transforms.shear", shear=shear), fill_value, interp_type)


def _translate(data: DataNode, rel_offset: DataNode, shape: Any, fill_value: int | None, interp_type: Any) -> DataNode:
    # Extents are (height, width), offsets (x, y).
    size = shape[1::-1] if isinstance(shape, DataNode) else np.array(shape[1::-1], np.float32)
    return _warp(data, apply("transforms.translation", offset=rel_offset * size), fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_x_param)
def translate_x(
    data: DataNode, rel_offset: DataNode, shape: Any, fill_value: int | None = 128, interp_type: Any = None
) -> DataNode:
    """Translate by a fraction of the width; `shape` starts with height and width."""
    return _translate(data, rel_offset, shape, fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_y_param)
def translate_y(
    data: DataNode, rel_offset: DataNode, shape: Any, fill_value: int | None = 128, interp_type: Any = None
) -> DataNode:
    """Translate by a fraction of the height; `shape` starts with height and width."""
    return _translate(data, rel_offset, shape, fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_x_param, name="translate_x")
def translate_x_no_shape(
    data: DataNode, offset: DataNode, fill_value: int | None = 128, interp_type: Any = None
) -> DataNode:
    """Translate along the width, in pixels."""
    return _warp(data, apply("transforms.translation", offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_y_param, name="translate_y")
def translate_y_no_shape(
    data: DataNode, offset: DataNode, fill_value: int | None = 128, interp_type: Any = None
) -> DataNode:
    """Translate along the height, in pixels."""
    return _warp(data, apply("transforms.translation", offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0, 30), randomly_negate=True)
def rotate(
    data: DataNode,
    angle: DataNode,
    fill_value: int | None = 128,
    interp_type: Any = None,
    rotate_keep_size: bool = True,
) -> DataNode:
    """Rotate around the center, in degrees."""
    named = {"fill_value": fill_value, "keep_size": rotate_keep_size, "interp_type": interp_type}
    return apply("rotate", data, angle=angle, **named)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def brightness(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiply all values by a factor."""
    return apply("brightness", data, brightness=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def contrast(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiply the distance to the mean gray level of the image by a factor."""
    return apply("_auto_aug.gray_contrast", data, contrast=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def color(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiply the saturation by a factor."""
    return apply("saturation", data, saturation=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=sharpness_kernel, param_device="auto")
def sharpness(data: DataNode, kernel: DataNode) -> DataNode:
    """Blur or sharpen. The border is mirrored; Pillow leaves border pixels unchanged."""
    return apply("filter", data, kernel)


@augmentation(mag_range=(0, 4), mag_to_param=poster_mask_uint8, param_device="auto")
def posterize(data: DataNode, mask: DataNode) -> DataNode:
    """Keep the most significant bits."""
    return data & mask


@augmentation(mag_range=(256, 0), param_device="cpu")
def solarize(data: DataNode, threshold: DataNode) -> DataNode:
    """Invert values that are not below a threshold."""
    return apply("_auto_aug.solarize", data, threshold=threshold)


@augmentation(mag_range=(0, 110), mag_to_param=solarize_add_shift, param_device="cpu")
def solarize_add(data: DataNode, shift: DataNode) -> DataNode:
    """Add a number to values below 128."""
    return apply("_auto_aug.solarize_add", data, shift=shift)


@augmentation
def invert(data: DataNode, _: None) -> DataNode:
    """Replace each value v by 255 - v."""
    return data ^ types.Constant(255, dtype=types.UINT8)


@augmentation
def equalize(data: DataNode, _: None) -> DataNode:
    """Equalize the histogram of each channel, as ``fn.equalize``."""
    return apply("equalize", data)


@augmentation
def auto_contrast(data: DataNode, _: None) -> DataNode:
    """Stretch each channel to 0 … 255."""
    return apply("_auto_aug.auto_contrast", data)


@augmentation
def identity(data: DataNode, _: None) -> DataNode:
    """Return the data unchanged."""
    return data
