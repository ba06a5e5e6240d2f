"""Decode images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.codecs.decode_batch import blank_image, decoder_rule
from dalify.codecs.decode_on_device import parse_files
from dalify.codecs.device_jpeg import reason_against
from dalify.data import Batch, DeviceSamples, Samples
from dalify.data.decoded_counts import DecodedCounts
from dalify.data.sample_memory import ChunkMemory, check_cache_options
from dalify.parameter_groups.crop import CropWindow
from dalify.parameter_groups.decoding import DecodeOptions, HardwareDecoder, decode
from dalify.parameter_groups.random_crop import RandomCrop
from dalify.parameter_groups.resize import ResizeSize
from dalify.registry import Spec, argument_names, operator


def _effect(arguments: Mapping[str, Any]) -> str:
    return "writes files" if arguments.get("cache_folder") else ""


@operator(mixed=True, effect=_effect)
def image(
    encoded: Spec,
    /,
    *,
    options: DecodeOptions,
    hardware: HardwareDecoder,
    cache_type: str = "",
    cache_size: int = 0,
    cache_threshold: int = 0,
    cache_batch_copy: bool = True,
    cache_debug: bool = False,
    cache_folder: str = "",
) -> Spec:
    """Decode images of any common format: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF.

    The format is detected from the data, not from the file name. JPEG results are bit-identical to libjpeg-turbo with
    its accurate DCT. With ``device="mixed"``, a decoder on the GPU decodes JPEG files if one is available, see the page
    about accelerators. All other files are decoded on the host, and the images are copied to the GPU.

    Args:
        encoded: contents of the files, uint8 ``[bytes]``.
        cache_type: cache decoded images: "threshold" caches images in order until the cache is full, "largest" keeps
            the largest images. The cache is in GPU memory if a decoder on the GPU decodes, otherwise in CPU memory;
            ``Pipeline.explain`` reports which. ``fn.cache`` can also cache later results. Samples without an identity,
            such as samples of an ``external_source``, are not cached; ``Pipeline.explain`` reports this.
        cache_size: maximum size of the cache in MiB; 0 disables it.
        cache_threshold: minimum size: cache only images with more bytes than this.
        cache_batch_copy: accepted but ignored: the images of a batch are copied from the GPU's cache in one call.
        cache_debug: accepted but ignored; ``Pipeline.explain`` reports cache hits.
        cache_folder: cache images in this folder instead of in memory; the processes of a machine can share the folder.
            The images are then decoded on the host.

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
    return decoder_rule(encoded, options.dtype)


@image.prepare
def _(encoded: Batch, *, options: DecodeOptions) -> dict[str, Any]:
    shapes, headers = options.shapes(encoded)
    return {"out_shapes": shapes, "headers": headers}


@image.cpu_samples
def _(out: Samples, encoded: Samples, *, options: DecodeOptions, hardware: HardwareDecoder, headers: Any) -> None:
    decode(out, encoded, options, hardware, headers)


@image.mixed_samples(reason_against, checked_by="_check_image", parse=parse_files)
def _(
    out: DeviceSamples,
    encoded: Samples,
    *,
    options: DecodeOptions,
    hardware: HardwareDecoder,
    headers: Any,
    cache: ChunkMemory | None = None,
    counts: DecodedCounts | None = None,
) -> None:
    decode(out, encoded, options, hardware, headers, cache=cache, counts=counts)


image.substitute(blank_image)


_KEPT = ("on_error", *argument_names(DecodeOptions, HardwareDecoder))
_BEFORE_RESIZE = {"into": "_decode_for_resize", "takes": argument_names(ResizeSize, CropWindow), "keeps": _KEPT}


@image.before(
    "random_resized_crop",
    "narrows",
    into="_decode_for_crop",
    takes=("size", *argument_names(RandomCrop)),
    keeps=_KEPT,
)
@image.before("_resize_crop", "narrows", **_BEFORE_RESIZE)
@image.before("resize_crop_mirror", "narrows", **_BEFORE_RESIZE)
def _(decoder: Mapping[str, Any], crop: Mapping[str, Any], source: Spec, device: str) -> bool:
    is_cached = decoder.get("cache_size") and decoder.get("cache_type")  # then, whole images are needed
    return device in ("cpu", "mixed") and not is_cached
