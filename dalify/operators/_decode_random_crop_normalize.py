"""Decode images, crop a random window of each, resize it, mirror and normalize it.

The pass ``fuse`` inserts it; users do not call it. Only a few decoded images are in memory at a time: with many threads,
those of whole chunks are a third of the memory of a training pipeline.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.codecs.decode_batch import blank_image, decoder_rule
from dalify.data import Batch
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.kernels.images.resample_filters import pixels_read
from dalify.kernels.images.resample_normalized import in_order, resample_parts_normalized
from dalify.kernels.random.philox import SampleDraws
from dalify.parameter_groups.decoding import DecodeOptions, HardwareDecoder, decoded_in_parts
from dalify.parameter_groups.normalization import Normalization, check_channel_values
from dalify.parameter_groups.random_crop import RandomCrop
from dalify.parameter_groups.resize import Filters
from dalify.registry import Spec, operator


@operator(random=True)
def _decode_random_crop_normalize(
    encoded: Spec,
    /,
    *,
    options: DecodeOptions,
    hardware: HardwareDecoder,
    filters: Filters,
    random_crop: RandomCrop,
    size: list[int],
    normalization: Normalization,
) -> Spec:
    """Decode images, crop a random window, resize it, mirror and normalize it.

    Args:
        encoded: see ``decoders.image``.
        size: see ``random_resized_crop``.

    Returns:
        FLOAT, layout `output_layout`, extents `size`.
    """
    decoder_rule(encoded, DALIDataType.UINT8)
    layout = normalization.output_layout
    return Spec(DALIDataType.FLOAT, 3, layout, tuple(in_order((size[0], size[-1], 3), layout)), encoded.device)


@_decode_random_crop_normalize.prepare
def _(
    encoded: Batch,
    *,
    options: DecodeOptions,
    random_crop: RandomCrop,
    size: tuple[int, ...],
    draws: SampleDraws,
    mean: Any,
    std: Any,
) -> dict[str, Any]:
    shapes, headers = options.shapes(encoded)
    windows = random_crop.windows(shapes[:, :2], draws)
    needed = pixels_read(shapes[:, :2], windows[:, :2], windows[:, :2] + windows[:, 2:], np.array(size))
    check_channel_values(mean, std, shapes[:, 2])
    start = windows[:, :2].astype(np.float32)
    end = start + windows[:, 2:].astype(np.float32)
    return {"start": start, "end": end, "shapes": shapes, "needed": needed, "headers": headers}


@_decode_random_crop_normalize.cpu_samples
def _(
    out: Samples,
    encoded: Samples,
    *,
    options: DecodeOptions,
    filters: Filters,
    normalization: Normalization,
    start: np.ndarray,
    end: np.ndarray,
    shapes: np.ndarray,
    needed: np.ndarray,
    headers: Any,
) -> None:
    images, parts = decoded_in_parts(encoded, options, headers, shapes, needed)
    resample_parts_normalized(
        out, images, parts, normalization.output_layout, start, end, filters.values, normalization.values
    )


_decode_random_crop_normalize.substitute(blank_image)
