"""Reject files that the image decoder of the CPU rejects, before a decoder on the device gets them.

Windows are not checked: a window that is not inside its image is an error of the decoder, and is not skipped.

The pass ``place`` inserts it for ``on_error="skip"``, next to the reader that has to supply another sample; users do
not call it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import of_sample
from dalify.codecs.decode_batch import blank_image, decoded_shapes
from dalify.codecs.image import decode_image
from dalify.codecs.image_format import as_bytes_array
from dalify.codecs.jpeg_check import is_complete, is_decodable
from dalify.codecs.jpeg_headers import JpegHeaders
from dalify.data import Batch, DALIImageType, Samples
from dalify.registry import Spec, operator


@operator
def _check_image(
    encoded: Spec, /, *, output_type: DALIImageType = DALIImageType.RGB, adjust_orientation: bool = True
) -> Spec:
    """Check files. Sequential JPEG files are checked in a fraction of the time of decoding, all others are decoded.

    Args:
        encoded: see ``decoders.image``.
        output_type: see ``decoders.image``.
        adjust_orientation: see ``decoders.image``.

    Returns:
        the files.
    """
    return encoded


@_check_image.prepare
def _(encoded: Batch, *, output_type: DALIImageType, adjust_orientation: bool) -> dict[str, Any]:
    _, headers = decoded_shapes(encoded, output_type, adjust_orientation)
    return {"out_shapes": Samples.of_batch(encoded).shapes, "headers": headers}


@_check_image.cpu_samples
def _(
    out: Samples,
    encoded: Samples,
    *,
    output_type: DALIImageType,
    adjust_orientation: bool,
    headers: JpegHeaders,
) -> None:
    is_sequential = headers.are_ordinary() & headers.are_plain(adjust_orientation=False)
    positions = headers.positions()
    for index, (target, data) in enumerate(zip(out.arrays(), encoded.arrays(), strict=True)):
        file = as_bytes_array(data)
        if not (is_sequential[index] and is_complete(file) and is_decodable(file, int(positions[index]))):
            try:
                decode_image(file, output_type, adjust_orientation=adjust_orientation, jpeg_header=headers[index])
            except Exception as error:
                of_sample(error, index)
                raise
        np.copyto(target, data)


_check_image.substitute(blank_image)
