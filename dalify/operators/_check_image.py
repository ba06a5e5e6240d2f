"""Reject files that the image decoder of the CPU rejects, before a decoder on the device gets them.

Windows are not checked: a window that is not inside its image is an error of the decoder, and is not skipped.

The pass ``place`` inserts it for ``on_error="skip"``, next to the reader that has to supply another sample; users do
not call it.
"""

from __future__ import annotations

from typing import Any

from dalify.codecs.check_files import check_files
from dalify.codecs.decode_batch import blank_image, decoded_shapes
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
    check_files(out, encoded, output_type, adjust_orientation, headers)


_check_image.substitute(blank_image)
