"""Checks JPEG files for a decoder on a device, so that damaged files are known before they are decoded there.

libjpeg-turbo rejects files only because of the contents of their markers: tables, parameters of frames and scans. For
damage in the compressed data, it only warns. So a file is checked by decoding it without its compressed data, at an
eighth of the size, which takes a fraction of the time.
"""

from __future__ import annotations

import re

import simplejpeg

from dalify.codecs.image_format import Bytes

_START_OF_SCAN = b"\xff\xda"
_END_OF_IMAGE = b"\xff\xd9"
# Some programs append a few bytes to a file.
_TAIL_BYTES = 64
# In compressed data, a zero follows each byte 0xFF that is not part of a marker; restart markers belong to the data.
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_FACTOR = 8


def is_complete(data: Bytes) -> bool:
    """Return whether a file has an end-of-image marker. Decoders on devices do not report truncated data."""
    return _END_OF_IMAGE in data[-_TAIL_BYTES:].tobytes()


def is_decodable(data: Bytes, frame_position: int) -> bool:
    """Return whether libjpeg-turbo decodes a complete file; False if that is uncertain.

    Args:
        data: a sequential JPEG, uint8 ``[bytes]``.
        frame_position: offset of the contents of the frame segment.
    """
    try:
        simplejpeg.decode_jpeg(
            _without_compressed_data(data.tobytes(), frame_position),
            "GRAY",
            min_height=1,
            min_width=1,
            min_factor=_FACTOR,
            strict=False,
        )
    except ValueError:
        return False
    return True


def _without_compressed_data(data: bytes, frame_position: int) -> bytes:
    """Return a file without the compressed data of its first scan; decoders reject the result for unusual data."""
    scan = data.find(_START_OF_SCAN, frame_position)
    end = scan + 2 + int.from_bytes(data[scan + 2 : scan + 4])
    following = _MARKER.search(data, end)
    return data[:end] + (_END_OF_IMAGE if following is None else data[following.start() :])
