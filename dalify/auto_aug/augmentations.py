"""The augmentations of AutoAugment, RandAugment and TrivialAugment, with DALI's magnitudes.

Sources: Cubuk et al., arXiv:1805.09501 and arXiv:1909.13719; Müller and Hutter, arXiv:2103.10158; what an operation is
called and does goes back to Pillow's ImageEnhance and ImageOps. Images are uint8 HWC, sequences FHWC; a sequence gets
one parameter for all its frames.
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
    """Return the factor of an enhancement: 1, which changes nothing, and the magnitude."""
    return 1.0 + magnitude


def sharpness_kernel(magnitude: float) -> np.ndarray:
    """Return the filter that blurs (-1), changes nothing (0) or sharpens (above)."""
    return sharpness_kernel_shifted(1.0 + magnitude)


def sharpness_kernel_shifted(magnitude: float) -> np.ndarray:
    """Return the filter that blurs (0), changes nothing (1) or sharpens (above)."""
    return (_SMOOTH * (1 - magnitude) + _UNCHANGED * magnitude).astype(np.float32)


def poster_mask_uint8(magnitude: float) -> np.ndarray:
    """Return the mask of the highest bits of a byte: as many as the magnitude, rounded half to even, 1 to 8."""
    bits = int(np.clip(np.round(magnitude), 1, 8))
    return np.array(256 - (1 << (8 - bits)), np.uint8)


def solarize_add_shift(shift: float) -> np.ndarray:
    """Return a magnitude as a byte; fractions are cut off, what lies outside is limited."""
    return np.array(np.clip(shift, 0, 255), np.uint8)


def _warp(data: DataNode, matrix: DataNode, fill_value: int | None, interp_type: Any) -> DataNode:
    options: dict[str, Any] = {} if interp_type is None else {"interp_type": interp_type}
    return apply("warp_affine", data, matrix=matrix, fill_value=fill_value, inverse_map=False, **options)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_x_param)
def shear_x(data: DataNode, shear: DataNode, fill_value: int | None = 128, interp_type: Any = None) -> DataNode:
    """Shift each row by its distance from the top times a factor."""
    return _warp(data, apply("transforms.shear", shear=shear), fill_value, interp_type)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_y_param)
def shear_y(data: DataNode, shear: DataNode, fill_value: int | None = 128, interp_type: Any = None) -> DataNode:
    """Shift each column by its distance from the left times a factor."""
    return _warp(data, apply("transforms.shear", shear=shear), fill_value, interp_type)


def _translated(data: DataNode, part: DataNode, shape: Any, fill_value: int | None, interp_type: Any) -> DataNode:
    # Extents come as (height, width), offsets go as (x, y).
    size = shape[1::-1] if isinstance(shape, DataNode) else np.array(shape[1::-1], np.float32)
    return _warp(data, apply("transforms.translation", offset=part * size), fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_x_param)
def translate_x(
    data: DataNode, rel_offset: DataNode, shape: Any, fill_value: int | None = 128, interp_type: Any = None
) -> DataNode:
    """Shift along the width by a part of it; `shape` begins with height and width."""
    return _translated(data, rel_offset, shape, fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_y_param)
def translate_y(
    data: DataNode, rel_offset: DataNode, shape: Any, fill_value: int | None = 128, interp_type: Any = None
) -> DataNode:
    """Shift along the height by a part of it; `shape` begins with height and width."""
    return _translated(data, rel_offset, shape, fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_x_param, name="translate_x")
def translate_x_no_shape(
    data: DataNode, offset: DataNode, fill_value: int | None = 128, interp_type: Any = None
) -> DataNode:
    """Shift along the width by pixels."""
    return _warp(data, apply("transforms.translation", offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_y_param, name="translate_y")
def translate_y_no_shape(
    data: DataNode, offset: DataNode, fill_value: int | None = 128, interp_type: Any = None
) -> DataNode:
    """Shift along the height by pixels."""
    return _warp(data, apply("transforms.translation", offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0, 30), randomly_negate=True)
def rotate(
    data: DataNode,
    angle: DataNode,
    fill_value: int | None = 128,
    interp_type: Any = None,
    rotate_keep_size: bool = True,
) -> DataNode:
    """Rotate about the centre by degrees."""
    options: dict[str, Any] = {} if interp_type is None else {"interp_type": interp_type}
    return apply("rotate", data, angle=angle, fill_value=fill_value, keep_size=rotate_keep_size, **options)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def brightness(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiply by a factor."""
    return apply("brightness", data, brightness=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def contrast(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiply the distance to the mean grey of the image by a factor."""
    return apply("_auto_aug.grey_contrast", data, contrast=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def color(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiply the saturation by a factor."""
    return apply("saturation", data, saturation=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=sharpness_kernel, param_device="auto")
def sharpness(data: DataNode, kernel: DataNode) -> DataNode:
    """Blur or sharpen; the border is mirrored, where Pillow leaves it as it is."""
    return apply("filter", data, kernel)


@augmentation(mag_range=(0, 4), mag_to_param=poster_mask_uint8, param_device="auto")
def posterize(data: DataNode, mask: DataNode) -> DataNode:
    """Keep the highest bits."""
    return data & mask


@augmentation(mag_range=(256, 0), param_device="cpu")
def solarize(data: DataNode, threshold: DataNode) -> DataNode:
    """Invert what is not below a threshold."""
    return apply("_auto_aug.solarize", data, threshold=threshold)


@augmentation(mag_range=(0, 110), mag_to_param=solarize_add_shift, param_device="cpu")
def solarize_add(data: DataNode, shift: DataNode) -> DataNode:
    """Add a number to values below 128."""
    return apply("_auto_aug.solarize_add", data, shift=shift)


@augmentation
def invert(data: DataNode, _: None) -> DataNode:
    """Replace each value by 255 minus it."""
    return data ^ types.Constant(255, dtype=types.UINT8)


@augmentation
def equalize(data: DataNode, _: None) -> DataNode:
    """Make all levels of each channel about equally frequent, as ``fn.equalize`` does."""
    return apply("equalize", data)


@augmentation
def auto_contrast(data: DataNode, _: None) -> DataNode:
    """Spread each channel over 0 … 255."""
    return apply("_auto_aug.auto_contrast", data)


@augmentation
def identity(data: DataNode, _: None) -> DataNode:
    """Change nothing."""
    return data
