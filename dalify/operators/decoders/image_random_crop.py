"""Decode a random window of images."""

from __future__ import annotations

from typing import Any

from dalify.codecs.decode_batch import decoder_rule, window_shapes
from dalify.data import Batch
from dalify.parameter_groups.decoding import DecodeOptions, HardwareDecoder, attach_decoding, decode_windows
from dalify.parameter_groups.random_crop import RandomCrop
from dalify.registry import Spec, operator


@operator(mixed=True, random=True)
def image_random_crop(
    encoded: Spec,
    /,
    *,
    options: DecodeOptions,
    random_crop: RandomCrop,
    hardware: HardwareDecoder,
) -> Spec:
    """Decode a window of random position, area and aspect ratio from images of any common format.

    The rows of a JPEG below the window are not decoded, which saves an eighth of the time on average.

    Args:
        encoded: contents of the files, uint8 ``[bytes]``.

    Returns:
        ``[height, width, channels]``, layout HWC; the same pixels as that window of the result of ``decoders.image``.

    Raises:
        DecodeError: not an image, damaged or truncated data, or an unsupported format; names the file.
        ArgumentValueError: a range is empty or out of bounds.

    Example:
        >>> images = fn.decoders.image_random_crop(encoded, random_area=[0.1, 1.0])  # doctest: +SKIP
        >>> images = fn.resize(images, size=[224, 224])  # doctest: +SKIP
    """
    random_crop.check()
    return decoder_rule(encoded, options.dtype)


@image_random_crop.prepare
def _(encoded: Batch, *, options: DecodeOptions, random_crop: RandomCrop, draws: Any) -> dict[str, Any]:
    shapes, headers = options.shapes(encoded)
    windows = random_crop.windows(shapes[:, :2], draws)
    return {"windows": windows, "out_shapes": window_shapes(windows, shapes), "headers": headers}


attach_decoding(image_random_crop, decode_windows)
