"""Decode only the part of an image that the random crop after it reads.

The pass ``push_crop`` inserts it; users do not call it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.codecs.decode_batch import blank_image, decode_group, decoded_shapes, decoder_rule
from dalify.codecs.decode_on_device import decode_on_device
from dalify.codecs.device_jpeg import reason_against
from dalify.codecs.jpeg_headers import JpegHeaders
from dalify.data.batch import Batch
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType, DALIImageType
from dalify.data.samples import Samples
from dalify.kernels.images.random_crop_window import draws_per_sample, random_crop_windows
from dalify.kernels.random.philox import SampleDraws
from dalify.parameter_groups.decoding import HardwareDecoder
from dalify.registry import Spec, operator

# Filters read at most three source pixels (Lanczos) beyond the window, times the downscaling factor.
_LARGEST_RADIUS = 3


@operator(random=True, stands_for="fn.decoders.image")
def _decode_for_crop(
    encoded: Spec,
    /,
    *,
    output_type: DALIImageType = DALIImageType.RGB,
    dtype: DALIDataType = DALIDataType.UINT8,
    adjust_orientation: bool = True,
    use_fast_idct: bool = False,
    num_attempts: int = 10,
    random_area: list[float],
    random_aspect_ratio: list[float],
    size: list[int],
    hardware: HardwareDecoder,
) -> Spec:
    """Decode the part of each image that a random crop reads.

    Args:
        encoded: see ``decoders.image``.
        output_type: see ``decoders.image``.
        dtype: see ``decoders.image``.
        adjust_orientation: see ``decoders.image``.
        use_fast_idct: see ``decoders.image``.
        num_attempts: as in the crop.
        random_area: as in the crop.
        random_aspect_ratio: as in the crop.
        size: output size of the crop.

    Returns:
        the images in full size; what the crop's filter does not read is undefined.
    """
    return decoder_rule(encoded, dtype)


@_decode_for_crop.prepare
def _(
    encoded: Batch,
    *,
    output_type: DALIImageType,
    adjust_orientation: bool,
    num_attempts: int,
    random_area: tuple[float, ...],
    random_aspect_ratio: tuple[float, ...],
    size: tuple[int, ...],
    draws: SampleDraws,
) -> dict[str, Any]:
    shapes, headers = decoded_shapes(encoded, output_type, adjust_orientation)
    uniforms = draws.uniform(draws_per_sample(num_attempts))
    windows = random_crop_windows(shapes[:, :2], uniforms, random_area, random_aspect_ratio)
    reach = _LARGEST_RADIUS * np.maximum(1.0, windows[:, 2:] / size) + 1
    first = np.floor(np.maximum(windows[:, :2] - reach, 0)).astype(np.int64)
    last = np.minimum(np.ceil(windows[:, :2] + windows[:, 2:] + reach).astype(np.int64), shapes[:, :2])
    return {"out_shapes": shapes, "needed": np.concatenate([first, last - first], axis=1), "headers": headers}


@_decode_for_crop.cpu_samples
def _(
    out: Samples,
    encoded: Samples,
    *,
    output_type: DALIImageType,
    dtype: DALIDataType,
    adjust_orientation: bool,
    use_fast_idct: bool,
    needed: np.ndarray,
    headers: JpegHeaders,
) -> None:
    decode_group(
        out,
        encoded,
        output_type,
        dtype,
        adjust_orientation,
        use_fast_idct,
        headers,
        needed=needed,
    )


@_decode_for_crop.mixed_samples(reason_against, checked_by="_check_image")
def _(
    out: DeviceSamples,
    encoded: Samples,
    *,
    output_type: DALIImageType,
    adjust_orientation: bool,
    hardware: HardwareDecoder,
    headers: JpegHeaders,
) -> None:
    # Whole images: to put the windows in their places would cost as much as the colors of the rest.
    decode_on_device(out, encoded, hardware.on_device(), output_type, adjust_orientation, headers)


_decode_for_crop.substitute(blank_image)
