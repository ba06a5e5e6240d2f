"""Decode images, crop a random window of each, resize it, mirror and normalize it, on the CPU.

The pass ``fuse`` inserts it; users do not call it. Only the pixels that the crop reads are stored, in the
memory of the results. Whole images in all threads would take a third of the memory of a training pipeline.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import LimitError, of_sample
from dalify.base.limits import check_shape, current
from dalify.codecs.decode_batch import blank_image, decoder_rule
from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.images.resample_filters import pixels_read
from dalify.kernels.images.resample_planes import has_resampled_planes, spare_memory
from dalify.kernels.random.philox import SampleDraws
from dalify.parameter_groups.decoding import DecodeOptions, decode_needed
from dalify.parameter_groups.normalization import Normalization, check_channel_values
from dalify.parameter_groups.random_crop import RandomCrop
from dalify.parameter_groups.resize import Filters
from dalify.registry import Spec, Vectors, operator

_CHANNELS = 3


@operator(random=True, operator_count=2)
def _decode_random_crop_normalize(
    encoded: Spec,
    /,
    *,
    options: DecodeOptions,
    filters: Filters,
    random_crop: RandomCrop,
    size: list[int],
    normalization: Normalization,
) -> Spec:
    """Decode images, crop a random window, resize it, mirror and normalize it.

    Args:
        encoded: see ``decoders.image``; the images have three channels of uint8.
        size: see ``random_resized_crop``.

    Returns:
        FLOAT, layout CHW, extents `size`.
    """
    decoder_rule(encoded, options.dtype)
    return Spec(DALIDataType.FLOAT, 3, "CHW", (_CHANNELS, size[0], size[-1]), encoded.device)


@_decode_random_crop_normalize.prepare
def _(
    encoded: Batch,
    *,
    options: DecodeOptions,
    random_crop: RandomCrop,
    size: tuple[int, ...],
    draws: SampleDraws,
    mean: Vectors,
    std: Vectors,
) -> dict[str, Any]:
    shapes, headers = options.shapes(encoded)
    _check_sizes(shapes)
    windows = random_crop.windows(shapes[:, :2], draws)
    needed = pixels_read(shapes[:, :2], windows[:, :2], windows[:, :2] + windows[:, 2:], np.array(size))
    check_channel_values(mean, std, shapes[:, 2])
    start = windows[:, :2].astype(np.float32)
    return {
        "out_shapes": (_CHANNELS, size[0], size[-1]),
        "start": start,
        "end": start + windows[:, 2:].astype(np.float32),
        "shapes": shapes,
        "needed": needed,
        "headers": headers,
    }


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
    images, fill = decode_needed(encoded, options, headers, shapes, needed, spare_memory(out))
    is_filled = has_resampled_planes(out, images, start, end, filters.values, normalization.values, fill)
    assert is_filled, "dalify bug: operators were joined that have no kernel"


def _check_sizes(shapes: np.ndarray) -> None:
    """Raise LimitError if a whole decoded image is larger than a result may be."""
    sizes = np.multiply.reduce(shapes, 1)
    if sizes.max() <= current().max_sample_bytes:
        return
    largest = int(sizes.argmax())
    try:
        check_shape(tuple(shapes[largest].tolist()), 1, "a result")
    except LimitError as error:
        of_sample(error, largest)
        raise


_decode_random_crop_normalize.substitute(blank_image)
