"""Decode images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.codecs.decode_batch import blank_image, decode_group, decoded_shapes, decoder_rule
from dalify.data.dtypes import DALIDataType, DALIImageType
from dalify.data.sample_memory import check_cache_options
from dalify.registry import Spec, operator


def _effect(arguments: Mapping[str, Any]) -> str:
    return "writes files" if arguments.get("cache_folder") else ""


@operator(mixed=True, effect=_effect)
def image(
    encoded: Spec,
    /,
    *,
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
    cache_type: str = "",
    cache_size: int = 0,
    cache_threshold: int = 0,
    cache_batch_copy: bool = True,
    cache_debug: bool = False,
    cache_folder: str = "",
) -> Spec:
    """Decode images of any common format: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF.

    The format is detected from the data, not from the file name. JPEG results are bit-identical to libjpeg-turbo's
    accurate path. With ``device="mixed"`` the images are decoded on the host and copied to the GPU.

    Args:
        encoded: contents of the files, uint8 ``[bytes]``.
        output_type: RGB, BGR, GRAY (luma), YCbCr (BT.601, studio range) or ANY_DATA (all channels as stored).
        dtype: element type. The full range of the stored values is mapped to that of the type: FLOAT is 0 to 1.
        adjust_orientation: rotate the image as its EXIF orientation tag specifies.
        use_fast_idct: JPEG only: a few percent faster; values differ by up to 9.
        jpeg_fancy_upsampling: accepted; chroma is always interpolated, as in DALI's CPU decoder.
        hybrid_huffman_threshold: option of DALI's hardware decoder; accepted but ignored.
        hw_decoder_load: option of DALI's hardware decoder; accepted but ignored.
        preallocate_width_hint: option of DALI's hardware decoder; accepted but ignored.
        preallocate_height_hint: option of DALI's hardware decoder; accepted but ignored.
        device_memory_padding: option of DALI's hardware decoder; accepted but ignored.
        host_memory_padding: option of DALI's hardware decoder; accepted but ignored.
        device_memory_padding_jpeg2k: option of DALI's hardware decoder; accepted but ignored.
        host_memory_padding_jpeg2k: option of DALI's hardware decoder; accepted but ignored.
        affine: option of DALI's hardware decoder; accepted but ignored.
        cache_type: cache decoded images on the CPU: "threshold" caches images in order until the cache is full,
            "largest" the largest ones. See ``fn.cache``, which can also cache later results. Samples that have no
            identity, such as those of an ``external_source``, are not cached; ``Pipeline.explain`` reports that.
        cache_size: maximum size of the cache in MiB; 0 disables it.
        cache_threshold: minimum size: cache only images with more bytes than this.
        cache_batch_copy: option of DALI's GPU cache; accepted but ignored.
        cache_debug: accepted but ignored; ``Pipeline.explain`` reports cache hits.
        cache_folder: cache images in this folder instead of in memory; processes of a machine can share it.

    Returns:
        ``[height, width, channels]``, layout HWC.

    Raises:
        DecodeError: not an image, damaged or truncated data, or an unsupported format; names the file.
        DTypeError: `dtype` is not supported for images.
        ArgumentValueError: an unknown cache type, or a negative cache size.

    Example:
        >>> encoded, labels = fn.readers.file(file_root="photos")  # doctest: +SKIP
        >>> images = fn.decoders.image(encoded, device="mixed", output_type=types.RGB)  # doctest: +SKIP
    """
    check_cache_options(cache_type, cache_size, cache_threshold, cache_folder)
    return decoder_rule(encoded, dtype)


@image.prepare
def _(encoded, *, output_type, adjust_orientation):
    shapes, headers = decoded_shapes(encoded, output_type, adjust_orientation)
    return {"out_shapes": shapes, "headers": headers}


@image.cpu_samples
def _(out, encoded, *, output_type, dtype, adjust_orientation, use_fast_idct, headers):
    decode_group(out, encoded, output_type, dtype, adjust_orientation, use_fast_idct, headers)


image.stand_in(blank_image)
