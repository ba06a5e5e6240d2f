"""Refuse files before ``image_random_crop`` on the device, like ``_check_image``, with the name of that operator.

The CPU refuses a file whatever the window is, so the window is not needed.

The pass ``place`` inserts it for ``on_error="skip"``, next to the reader that has to supply another sample; users do
not call it.
"""

from __future__ import annotations

from typing import Any

from dalify.codecs.check_files import check_files
from dalify.codecs.decode_batch import blank_image, decoded_shapes
from dalify.codecs.jpeg_headers import JpegHeaders
from dalify.data.batch import Batch
from dalify.data.dtypes import DALIImageType
from dalify.data.samples import Samples
from dalify.registry import Spec, operator


@operator(stands_for="fn.decoders.image_random_crop")
def _check_random_crop(
    encoded: Spec, /, *, output_type: DALIImageType = DALIImageType.RGB, adjust_orientation: bool = True
) -> Spec:
    """Check files. Sequential JPEG files are checked in a fraction of the time of decoding, all others are decoded.

    Args:
        encoded: see ``decoders.image_random_crop``.
        output_type: see ``decoders.image_random_crop``.
        adjust_orientation: see ``decoders.image_random_crop``.

    Returns:
        the files.
    """
    return encoded


@_check_random_crop.prepare
def _(encoded: Batch, *, output_type: DALIImageType, adjust_orientation: bool) -> dict[str, Any]:
    _, headers = decoded_shapes(encoded, output_type, adjust_orientation)
    return {"out_shapes": Samples.of_batch(encoded).shapes, "headers": headers}


@_check_random_crop.cpu_samples
def _(
    out: Samples,
    encoded: Samples,
    *,
    output_type: DALIImageType,
    adjust_orientation: bool,
    headers: JpegHeaders,
) -> None:
    check_files(out, encoded, output_type, adjust_orientation, headers)


_check_random_crop.substitute(blank_image)
