"""Decode only the part of an image that the resize after it reads.

The pass ``push_crop`` inserts it; users do not call it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import DalifyError
from dalify.codecs.decode_batch import decoder_rule
from dalify.data import Batch
from dalify.kernels.images.resample_filters import pixels_read
from dalify.parameter_groups.crop import CropWindow
from dalify.parameter_groups.decoding import DecodeOptions, HardwareDecoder, attach_decoding, decode_parts
from dalify.parameter_groups.resize import ResizeSize, cropped_sources
from dalify.registry import Spec, operator


@operator
def _decode_for_resize(
    encoded: Spec,
    /,
    *,
    options: DecodeOptions,
    hardware: HardwareDecoder,
    target: ResizeSize,
    window: CropWindow,
) -> Spec:
    """Decode the part of each image that ``resize_crop_mirror`` or ``_resize_crop`` reads.

    Args:
        encoded: see ``decoders.image``.

    Returns:
        the images in full size; what no filter reads is undefined.
    """
    return decoder_rule(encoded, options.dtype)


@_decode_for_resize.prepare
def _(encoded: Batch, *, options: DecodeOptions, target: ResizeSize, window: CropWindow) -> dict[str, Any]:
    shapes, headers = options.shapes(encoded)
    extents = shapes[:, :2]
    try:
        start, end, sizes = cropped_sources(target, window, "HW", extents)
    except DalifyError:  # the resize raises it
        start, end, sizes = np.zeros_like(extents), extents, extents
    return {"out_shapes": shapes, "needed": pixels_read(extents, start, end, sizes), "headers": headers}


attach_decoding(_decode_for_resize, decode_parts)
