"""Decode a part of fixed size of images."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.codecs.group import blank_picture, decode_group, decoded_shapes, decoder_rule, window_shapes
from dalify.data.dtypes import DALIDataType, DALIImageType
from dalify.kernels.crop_geometry import check_crop_arguments
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
    output_type: DALIImageType = DALIImageType.RGB,
    dtype: DALIDataType = DALIDataType.UINT8,
    adjust_orientation: bool = True,
    use_fast_idct: bool = False,
    jpeg_fancy_upsampling: bool = False,
    hybrid_huffman_threshold: int = 1000000,
    hw_decoder_load: float = 0.65,
    preallocate_width_hint: int = 0,
    preallocate_height_hint: int = 0,
    device_memory_padding: int = 16777216,
    host_memory_padding: int = 8388608,
    device_memory_padding_jpeg2k: int = 0,
    host_memory_padding_jpeg2k: int = 0,
    affine: bool = True,
) -> Spec:
    """Decode a part of the given size of images of any common format.

    The part begins at ``round((extent - crop) * crop_pos)``. The rows of a JPEG below it are not decoded.

    Args:
        encoded: files as they are, uint8 ``[bytes]``.
        crop: height and width in pixels (of three numbers the last two count); fractions are cut off; 0 is the whole
            extent.
        crop_h: height, instead of ``crop``.
        crop_w: width, instead of ``crop``.
        crop_d: depth, of volumes: accepted, without effect.
        crop_pos_x: from 0 (left) to 1 (right).
        crop_pos_y: from 0 (top) to 1 (bottom).
        crop_pos_z: of volumes: accepted, without effect.
        rounding: of the first row and column: "round" (half away from zero) or "truncate".
        output_type: RGB, BGR, GRAY (luma), YCbCr (BT.601, studio range) or ANY_DATA (all channels as stored).
        dtype: element type. The full range of the stored values becomes the full range of the type: FLOAT is 0 to 1.
        adjust_orientation: turn the image upright as its EXIF note says.
        use_fast_idct: of JPEG: a few percent faster, values differ by up to 9.
        jpeg_fancy_upsampling: accepted; chroma is always interpolated, as in DALI's CPU decoder.
        hybrid_huffman_threshold: of DALI's hardware decoder; accepted, without effect.
        hw_decoder_load: of DALI's hardware decoder; accepted, without effect.
        preallocate_width_hint: of DALI's hardware decoder; accepted, without effect.
        preallocate_height_hint: of DALI's hardware decoder; accepted, without effect.
        device_memory_padding: of DALI's hardware decoder; accepted, without effect.
        host_memory_padding: of DALI's hardware decoder; accepted, without effect.
        device_memory_padding_jpeg2k: of DALI's hardware decoder; accepted, without effect.
        host_memory_padding_jpeg2k: of DALI's hardware decoder; accepted, without effect.
        affine: of DALI's hardware decoder; accepted, without effect.

    Returns:
        ``[height, width, channels]``, layout HWC; the same pixels as ``decoders.image`` gives there.

    Raises:
        DecodeError: no image, damaged or truncated data, or a kind that is not supported; names the file.
        IndexingError: the part is larger than the image.
        ArgumentValueError: a position outside 0 to 1, contradicting extents, or another rounding.

    Example:
        >>> images = fn.decoders.image_crop(encoded, crop=[224, 224])  # doctest: +SKIP
    """
    check_crop_arguments(crop=crop, crop_d=crop_d, crop_h=crop_h, crop_w=crop_w, rounding=rounding)
    return decoder_rule(encoded, dtype)


@image_crop.prepare
def _(encoded, *, crop, crop_h, crop_w, crop_pos_x, crop_pos_y, rounding, output_type, adjust_orientation):
    shapes, headers = decoded_shapes(encoded, output_type, adjust_orientation)
    extents = shapes[:, :2]
    wanted = np.stack([crop_h, crop_w], axis=1)
    if crop is not None:
        if crop.shape[1] not in (2, 3):
            raise ShapeError(f"crop must have two numbers, height and width; got {crop.shape[1]}.")
        wanted = crop[:, -2:]
    wrong = ~((wanted >= 0) & (wanted < 2**31))
    if wrong.any():
        raise ArgumentValueError(f"extents of a crop must be numbers from 0 on; got {wanted[wrong][0]:g}.")
    positions = np.stack([crop_pos_y, crop_pos_x], axis=1)
    outside = ~((positions >= 0) & (positions <= 1))
    if outside.any():
        raise ArgumentValueError(f"crop_pos_x and crop_pos_y must be from 0 to 1; got {positions[outside][0]:g}.")
    sizes = np.where(wanted.astype(np.int64) == 0, extents, wanted.astype(np.int64))
    starts = np.floor((extents - sizes) * positions + (0.5 if rounding == "round" else 0)).astype(np.int64)
    windows = np.concatenate([starts, sizes], axis=1)
    return {"windows": windows, "out_shapes": window_shapes(windows, shapes), "headers": headers}


@image_crop.cpu_samples
def _(out, encoded, *, output_type, dtype, adjust_orientation, use_fast_idct, windows, headers):
    decode_group(out, encoded, output_type, dtype, adjust_orientation, use_fast_idct, headers, windows)


image_crop.stand_in(blank_picture)
