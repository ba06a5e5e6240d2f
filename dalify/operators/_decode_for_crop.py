"""Decode only the part of an image that the random crop after it reads.

The pass ``push_crop`` inserts it; users do not call it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.codecs.decode_batch import decoder_rule
from dalify.data import Batch, DALIDataType, DALIImageType, DALIInterpType
from dalify.kernels.images.crop_mirror_normalize import PIXELS
from dalify.kernels.images.resample_filters import pixels_read
from dalify.kernels.random.philox import SampleDraws
from dalify.parameter_groups.decoding import DecodeOptions, HardwareDecoder, attach_decoding, decode_parts
from dalify.parameter_groups.normalization import Normalization
from dalify.parameter_groups.random_crop import RandomCrop
from dalify.parameter_groups.resize import Filters
from dalify.registry import VARIES, Spec, argument_names, operator

_COLORS = (DALIImageType.RGB, DALIImageType.BGR)
_INTERPOLATION = ("interp_type", "min_filter", "mag_filter")


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


attach_decoding(_decode_for_crop, decode_parts)


_KEPT = ("on_error", "size", *argument_names(DecodeOptions, RandomCrop))


@_decode_for_crop.before(
    "_random_resized_crop_normalize",
    "merges",
    into="_decode_random_crop_normalize",
    takes=argument_names(Filters, Normalization),
    keeps=_KEPT,
)
def _(decoder: Mapping[str, Any], crop: Mapping[str, Any], source: Spec, device: str) -> bool:
    """Return whether the kernel for planes supports all images, so that only damaged ones are errors of samples."""
    types = decoder.get("output_type", DALIImageType.RGB), decoder.get("dtype", DALIDataType.UINT8)
    if device != "cpu" or types[0] not in _COLORS or types[1] is not DALIDataType.UINT8:
        return False
    if any(crop.get(name) is VARIES for name in ("size", "mean", "std", *_INTERPOLATION)):
        return False
    is_smooth = all(crop.get(name) is not DALIInterpType.INTERP_NN for name in _INTERPOLATION)
    return is_smooth and crop["size"][-1] >= PIXELS
