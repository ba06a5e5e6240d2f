"""Decode images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.codecs.group import blank_picture, decode_group, decoded_shapes, decoder_rule
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

    The format is told by the data, not by a file name. JPEG is decoded bit for bit as by libjpeg-turbo's accurate path.
    With ``device="mixed"`` the images are decoded on the host and lie on the GPU.

    Args:
        encoded: files as they are, uint8 ``[bytes]``.
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
        cache_type: keep decoded images for the next epoch, on the CPU: "threshold" keeps those that come first, until
            the cache is full, "largest" the largest ones. See ``fn.cache``, which also keeps what is made of images.
            Where samples cannot be told apart, as those of an ``external_source``, nothing is kept;
            ``Pipeline.explain`` says so.
        cache_size: bound of the cache in MiB; nothing is kept with 0.
        cache_threshold: only images of more than so many bytes are kept.
        cache_batch_copy: of DALI's cache on the GPU; accepted, without effect.
        cache_debug: accepted; ``Pipeline.explain`` tells what came from the cache.
        cache_folder: keep images in this folder instead of memory; processes of a machine may share it.

    Returns:
        ``[height, width, channels]``, layout HWC.

    Raises:
        DecodeError: no image, damaged or truncated data, or a kind that is not supported; names the file.
        DTypeError: a type that images cannot have.
        ArgumentValueError: an unknown type of cache, or a negative size of it.

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


image.stand_in(blank_picture)
