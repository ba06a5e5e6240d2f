"""Decode a window of a given size from images."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.codecs.decode_batch import decoder_rule, window_shapes
from dalify.data import Batch
from dalify.kernels.images.crop_geometry import check_crop_arguments
from dalify.parameter_groups.decoding import DecodeOptions, HardwareDecoder, attach_decoding, decode_windows
from dalify.registry import PerSample, Spec, operator


@operator(mixed=True)
def image_crop(
    encoded: Spec,
    /,
    *,
    crop: PerSample[list[float]] | None = None,
    crop_h: PerSample[float] = 0.0,
    crop_w: PerSample[float] = 0.0,
    crop_d: PerSample[float] = 0.0,
    crop_pos_x: PerSample[float] = 0.5,
    crop_pos_y: PerSample[float] = 0.5,
    crop_pos_z: PerSample[float] = 0.5,
    rounding: str = "round",
    options: DecodeOptions,
    hardware: HardwareDecoder,
) -> Spec:
    """Decode a window of a given size from images of any common format.

    The window starts at ``round((extent - crop) * crop_pos)``. The rows of a JPEG below it are not decoded.

    Args:
        encoded: contents of the files, uint8 ``[bytes]``.
        crop: height and width in pixels (the last two of three numbers); fractions are truncated; 0 is the full
            extent.
        crop_h: height, instead of ``crop``.
        crop_w: width, instead of ``crop``.
        crop_d: depth of volumes; accepted but ignored.
        crop_pos_x: position of the window, 0 (left) to 1 (right).
        crop_pos_y: position of the window, 0 (top) to 1 (bottom).
        crop_pos_z: position in volumes; accepted but ignored.
        rounding: how the start of the window is rounded: "round" (half away from zero) or "truncate".

    Returns:
        ``[height, width, channels]``, layout HWC; the same pixels as that window of the result of ``decoders.image``.

    Raises:
        DecodeError: not an image, damaged or truncated data, or an unsupported format; names the file.
        IndexingError: the window is larger than the image.
        ArgumentValueError: a position outside [0, 1], contradictory extents, or an unknown rounding.

    Example:
        >>> images = fn.decoders.image_crop(encoded, crop=[224, 224])  # doctest: +SKIP
    """
    check_crop_arguments(crop=crop, crop_d=crop_d, crop_h=crop_h, crop_w=crop_w, rounding=rounding)
    return decoder_rule(encoded, options.dtype)


@image_crop.prepare
def _(
    encoded: Batch,
    *,
    crop: Any,
    crop_h: np.ndarray,
    crop_w: np.ndarray,
    crop_pos_x: np.ndarray,
    crop_pos_y: np.ndarray,
    rounding: str,
    options: DecodeOptions,
) -> dict[str, Any]:
    shapes, headers = options.shapes(encoded)
    extents = shapes[:, :2]
    requested = np.stack([crop_h, crop_w], axis=1)
    if crop is not None:
        if crop.shape[1] not in (2, 3):
            raise ShapeError(f"crop must have two numbers, height and width; got {crop.shape[1]}.")
        requested = crop[:, -2:]
    wrong = ~(abs(requested) < 2**31)
    if wrong.any():
        raise ArgumentValueError(f"crop extents must be less than 2**31; got {requested[wrong][0]:g}.")
    crop_pos = np.stack([crop_pos_y, crop_pos_x], axis=1)
    outside = ~((crop_pos >= 0) & (crop_pos <= 1))
    if outside.any():
        raise ArgumentValueError(f"crop_pos_x and crop_pos_y must be between 0 and 1; got {crop_pos[outside][0]:g}.")
    wanted = requested.astype(np.int64)
    sizes = np.where(wanted > 0, wanted, extents)
    starts = np.floor((extents - sizes) * crop_pos + (0.5 if rounding == "round" else 0)).astype(np.int64)
    windows = np.concatenate([starts, sizes], axis=1)
    return {"windows": windows, "out_shapes": window_shapes(windows, shapes), "headers": headers}


attach_decoding(image_crop, decode_windows)
