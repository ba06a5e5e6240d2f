"""Checks that the host decoder accepts the files of a chunk, before they are decoded on the device."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import of_sample
from dalify.codecs.image import decode_image
from dalify.codecs.image_format import as_bytes_array
from dalify.codecs.jpeg_check import is_complete, is_decodable
from dalify.codecs.jpeg_headers import JpegHeaders
from dalify.data.dtypes import DALIImageType
from dalify.data.samples import Samples

__all__ = ["check_files"]


def check_files(
    out: Samples, encoded: Samples, output_type: DALIImageType, adjust_orientation: bool, headers: JpegHeaders
) -> None:
    """Check files and copy them. Sequential JPEG files are checked without decoding them; others are decoded.

    Args:
        out: copies of the files, output.
        encoded: files, uint8 ``[bytes]``.
        output_type: see ``decode_group``.
        adjust_orientation: see ``decode_group``.
        headers: headers from ``decoded_shapes``.

    Raises:
        Exception: any error of ``decode_image``, with the index of the sample.
    """
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
