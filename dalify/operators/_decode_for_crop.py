"""Decode only the part of an image that the random crop after it reads.

The pass ``push_crop`` inserts it; users do not call it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from dalify.codecs.decode_batch import blank_image, decoder_rule
from dalify.codecs.device_jpeg import reason_against
from dalify.data.batch import Batch
from dalify.data.dtypes import DALIDataType, DALIImageType
from dalify.data.samples import Samples
from dalify.kernels.images.resample_filters import pixels_read
from dalify.kernels.random.philox import SampleDraws
from dalify.parameter_groups.decoding import DecodeOptions, HardwareDecoder, decode
from dalify.parameter_groups.normalization import Normalization
from dalify.parameter_groups.random_crop import RandomCrop
from dalify.parameter_groups.resize import Filters
from dalify.registry import VARIES, AnySamples, Spec, operator


@operator(random=True)
def _decode_for_crop(
    encoded: Spec,
    /,
    *,
    options: DecodeOptions,
    hardware: HardwareDecoder,
    random_crop: RandomCrop,
    size: list[int],
) -> Spec:
    """Decode the part of each image that a random crop reads.

    Args:
        encoded: see ``decoders.image``.
        size: output size of the crop.

    Returns:
        the images in full size; what the crop's filter does not read is undefined.
    """
    return decoder_rule(encoded, options.dtype)


@_decode_for_crop.prepare
def _(
    encoded: Batch, *, options: DecodeOptions, random_crop: RandomCrop, size: tuple[int, ...], draws: SampleDraws
) -> dict[str, Any]:
    shapes, headers = options.shapes(encoded)
    windows = random_crop.windows(shapes[:, :2], draws)
    needed = pixels_read(shapes[:, :2], windows[:, :2], windows[:, :2] + windows[:, 2:], np.array(size))
    return {"out_shapes": shapes, "needed": needed, "headers": headers}


@_decode_for_crop.cpu_samples
@_decode_for_crop.mixed_samples(reason_against, checked_by="_check_image")
def _(
    out: AnySamples,
    encoded: Samples,
    *,
    options: DecodeOptions,
    hardware: HardwareDecoder,
    needed: np.ndarray,
    headers: Any,
) -> None:
    # The device decodes whole images: windows would have to be copied to their positions, see docs/accelerators.md.
    decode(out, encoded, options, hardware, headers, needed=needed)


_decode_for_crop.substitute(blank_image)


@_decode_for_crop.before(
    "_random_resized_crop_normalize",
    "merges",
    into="_decode_random_crop_normalize",
    takes=tuple(item.name for group in (Filters, Normalization) for item in fields(group)),
)
def _(decoder: Mapping[str, Any], crop: Mapping[str, Any], source: Spec, device: str) -> bool:
    # Means of a sample can be wrong, which is not a damaged image.
    has_constants = not any(crop.get(name) is VARIES for name in ("mean", "std"))
    is_rgb = decoder.get("output_type", DALIImageType.RGB) in (DALIImageType.RGB, DALIImageType.BGR)
    return device == "cpu" and has_constants and is_rgb and decoder.get("dtype") in (None, DALIDataType.UINT8)
