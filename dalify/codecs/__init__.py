"""Decodes bytes to arrays: images, audio, video, npy. Codecs do not depend on operators, batches or devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalify.base.optional import imported_at_first_use

if TYPE_CHECKING:
    from dalify.codecs.jpeg import JpegHeader, decode_first_rows, read_jpeg_header
    from dalify.codecs.video import Video

__all__ = ["JpegHeader", "Video", "decode_first_rows", "read_jpeg_header"]

# Most programs need only one codec.
__getattr__ = imported_at_first_use(
    __name__, {"JpegHeader": "jpeg", "Video": "video", "decode_first_rows": "jpeg", "read_jpeg_header": "jpeg"}
)
