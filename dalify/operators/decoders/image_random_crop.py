"""Decode a random window of images."""

from __future__ import annotations

from dalify.codecs.decode_batch import blank_image, decode_group, decoded_shapes, decoder_rule, window_shapes
from dalify.data.dtypes import DALIDataType, DALIImageType
from dalify.kernels.images.random_crop_window import check_random_crop, draws_per_sample, random_crop_windows
from dalify.registry import Spec, operator


@operator(mixed=True, random=True)
def image_random_crop(
    encoded: Spec,
    /,
    *,
    output_type: DALIImageType = DALIImageType.RGB,
    dtype: DALIDataType = DALIDataType.UINT8,
    adjust_orientation: bool = True,
    use_fast_idct: bool = False,
    jpeg_fancy_upsampling: bool = False,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006 - the signature is the schema; the list is never mutated
    random_aspect_ratio: list[float] = [3 / 4, 4 / 3],  # noqa: B006
    num_attempts: int = 10,
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
    """Decode a window of random position, area and aspect ratio from images of any common format.

    The rows of a JPEG below the window are not decoded, which saves an eighth of the time on average.

    Args:
        encoded: contents of the files, uint8 ``[bytes]``.
        output_type: RGB, BGR, GRAY (luma), YCbCr (BT.601, studio range) or ANY_DATA (all channels as stored).
        dtype: element type. The full range of the stored values is mapped to that of the type: FLOAT is 0 to 1.
        adjust_orientation: rotate the image as its EXIF orientation tag specifies.
        use_fast_idct: JPEG only: a few percent faster; values differ by up to 9.
        jpeg_fancy_upsampling: accepted; chroma is always interpolated, as in DALI's CPU decoder.
        random_area: minimum and maximum fraction of the image area, in (0, 1]; uniform.
        random_aspect_ratio: minimum and maximum of width / height; log-uniform.
        num_attempts: maximum number of windows drawn until one fits; after that, the largest window with an allowed
            aspect ratio is used.
        hybrid_huffman_threshold: option of DALI's hardware decoder; accepted but ignored.
        hw_decoder_load: option of DALI's hardware decoder; accepted but ignored.
        preallocate_width_hint: option of DALI's hardware decoder; accepted but ignored.
        preallocate_height_hint: option of DALI's hardware decoder; accepted but ignored.
        device_memory_padding: option of DALI's hardware decoder; accepted but ignored.
        host_memory_padding: option of DALI's hardware decoder; accepted but ignored.
        device_memory_padding_jpeg2k: option of DALI's hardware decoder; accepted but ignored.
        host_memory_padding_jpeg2k: option of DALI's hardware decoder; accepted but ignored.
        affine: option of DALI's hardware decoder; accepted but ignored.

    Returns:
        ``[height, width, channels]``, layout HWC; the same pixels as that window of the result of ``decoders.image``.

    Raises:
        DecodeError: not an image, damaged or truncated data, or an unsupported format; names the file.
        ArgumentValueError: a range is empty or out of bounds.

    Example:
        >>> images = fn.decoders.image_random_crop(encoded, random_area=[0.1, 1.0])  # doctest: +SKIP
        >>> images = fn.resize(images, size=[224, 224])  # doctest: +SKIP
    """
    check_random_crop(random_area, random_aspect_ratio, num_attempts)
    return decoder_rule(encoded, dtype)


@image_random_crop.prepare
def _(encoded, *, output_type, adjust_orientation, random_area, random_aspect_ratio, num_attempts, draws):
    shapes, headers = decoded_shapes(encoded, output_type, adjust_orientation)
    uniforms = draws.uniform(draws_per_sample(num_attempts))
    windows = random_crop_windows(shapes[:, :2], uniforms, random_area, random_aspect_ratio)
    return {"windows": windows, "out_shapes": window_shapes(windows, shapes), "headers": headers}


@image_random_crop.cpu_samples
def _(out, encoded, *, output_type, dtype, adjust_orientation, use_fast_idct, windows, headers):
    decode_group(out, encoded, output_type, dtype, adjust_orientation, use_fast_idct, headers, windows)


image_random_crop.stand_in(blank_image)
