"""The augmentations of AutoAugment, RandAugment and TrivialAugment, with the ranges of magnitudes of DALI.

Sources: Cubuk et al., arXiv:1805.09501 and arXiv:1909.13719; Müller and Hutter, arXiv:2103.10158; the
operations and their names follow Pillow's ImageEnhance and ImageOps. Images are uint8 HWC, sequences FHWC; all frames
of a sequence share one parameter. Magnitudes that can be negated are negated with probability one half.
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
    """Return the vector (x, y) along the width."""
    return [magnitude, 0.0]


def warp_y_param(magnitude: float) -> list[float]:
    """Return the vector (x, y) along the height."""
    return [0.0, magnitude]


def shift_enhance_range(magnitude: float) -> float:
    """Return the factor of an enhancement: 1 + magnitude; the factor 1 leaves the image unchanged."""
    return 1.0 + magnitude


def sharpness_kernel(magnitude: float) -> np.ndarray:
    """Return the 3 x 3 kernel that blurs (magnitude below 0), keeps the image (0) or sharpens (above 0)."""
    return sharpness_kernel_shifted(1.0 + magnitude)


def sharpness_kernel_shifted(magnitude: float) -> np.ndarray:
    """Return the 3 x 3 kernel that blurs (magnitude below 1), keeps the image (1) or sharpens (above 1).

    Pillow blends the image with the result of ``ImageFilter.SMOOTH``; `magnitude` is the weight of the image.
    """
    return (_SMOOTH * (1 - magnitude) + _UNCHANGED * magnitude).astype(np.float32)


def poster_mask_uint8(magnitude: float) -> np.ndarray:
    """Return a mask of the most significant bits of a byte, 1 to 8: the magnitude, rounded half to even and clipped."""
    bits = int(np.clip(np.round(magnitude), 1, 8))
    return np.array(256 - (1 << (8 - bits)), np.uint8)


def solarize_add_shift(shift: float) -> np.ndarray:
    """Return a magnitude as a uint8, clipped to [0, 255] and truncated."""
    return np.array(np.clip(shift, 0, 255), np.uint8)


def _warp(data: DataNode, matrix: DataNode, fill_value: int | None, interp_type: Any) -> DataNode:
    return apply("warp_affine", data, matrix=matrix, fill_value=fill_value, inverse_map=False, interp_type=interp_type)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_x_param)
def shear_x(data: DataNode, shear: DataNode, fill_value: int | None = 128, interp_type: Any = None) -> DataNode:
    """Shear along the width by 0 to 0.3, in either direction: the row at y is shifted by ``shear * y`` pixels."""
    return _warp(data, apply("transforms.shear", shear=shear), fill_value, interp_type)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_y_param)
def shear_y(data: DataNode, shear: DataNode, fill_value: int | None = 128, interp_type: Any = None) -> DataNode:
    """Shear along the height by 0 to 0.3, in either direction: the column at x is shifted by ``shear * x`` pixels."""
    return _warp(data, apply("transforms.shear", shear=shear), fill_value, interp_type)


def _translate(data: DataNode, rel_offset: DataNode, shape: Any, fill_value: int | None, interp_type: Any) -> DataNode:
    # Extents are (height, width), offsets (x, y).
    size = shape[1::-1] if isinstance(shape, DataNode) else np.array(shape[1::-1], np.float32)
    return _warp(data, apply("transforms.translation", offset=rel_offset * size), fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_x_param)
def translate_x(
    data: DataNode, rel_offset: DataNode, shape: Any, fill_value: int | None = 128, interp_type: Any = None
) -> DataNode:
    """Translate by 0 to 1 times the width, in either direction; `shape` starts with height and width."""
    return _translate(data, rel_offset, shape, fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_y_param)
def translate_y(
    data: DataNode, rel_offset: DataNode, shape: Any, fill_value: int | None = 128, interp_type: Any = None
) -> DataNode:
    """Translate by 0 to 1 times the height, in either direction; `shape` starts with height and width."""
    return _translate(data, rel_offset, shape, fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_x_param, name="translate_x")
def translate_x_no_shape(
    data: DataNode, offset: DataNode, fill_value: int | None = 128, interp_type: Any = None
) -> DataNode:
    """Translate along the width by 0 to 250 pixels, in either direction."""
    return _warp(data, apply("transforms.translation", offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_y_param, name="translate_y")
def translate_y_no_shape(
    data: DataNode, offset: DataNode, fill_value: int | None = 128, interp_type: Any = None
) -> DataNode:
    """Translate along the height by 0 to 250 pixels, in either direction."""
    return _warp(data, apply("transforms.translation", offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0, 30), randomly_negate=True)
def rotate(
    data: DataNode,
    angle: DataNode,
    fill_value: int | None = 128,
    interp_type: Any = None,
    rotate_keep_size: bool = True,
) -> DataNode:
    """Rotate around the center by 0 to 30 degrees, in either direction."""
    named = {"fill_value": fill_value, "keep_size": rotate_keep_size, "interp_type": interp_type}
    return apply("rotate", data, angle=angle, **named)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def brightness(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiply all values by a factor of 0.1 to 1.9."""
    return apply("brightness", data, brightness=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def contrast(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiply the distance to the mean gray level of the image by a factor of 0.1 to 1.9."""
    return apply("_auto_aug.gray_contrast", data, contrast=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def color(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiply the saturation by a factor of 0.1 to 1.9."""
    return apply("saturation", data, saturation=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=sharpness_kernel, param_device="auto")
def sharpness(data: DataNode, kernel: DataNode) -> DataNode:
    """Blur or sharpen by 0 to 0.9, see `sharpness_kernel`. The border is mirrored; Pillow keeps the border pixels."""
    return apply("filter", data, kernel)


@augmentation(mag_range=(0, 4), mag_to_param=poster_mask_uint8, param_device="auto")
def posterize(data: DataNode, mask: DataNode) -> DataNode:
    """Keep the 1 to 4 most significant bits of each value."""
    return data & mask


@augmentation(mag_range=(256, 0), param_device="cpu")
def solarize(data: DataNode, threshold: DataNode) -> DataNode:
    """Replace each value v that is not below a threshold, 256 to 0, by 255 - v."""
    return apply("_auto_aug.solarize", data, threshold=threshold)


@augmentation(mag_range=(0, 110), mag_to_param=solarize_add_shift, param_device="cpu")
def solarize_add(data: DataNode, shift: DataNode) -> DataNode:
    """Add a number, 0 to 110, to values below 128."""
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
    """Stretch the values of each channel linearly to [0, 255]."""
    return apply("_auto_aug.auto_contrast", data)


@augmentation
def identity(data: DataNode, _: None) -> DataNode:
    """Return the data unchanged."""
    return data
