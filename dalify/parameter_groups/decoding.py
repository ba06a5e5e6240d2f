"""Options of decoders of images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.codecs.decode_batch import decode_group, decoded_shapes
from dalify.data import Batch
from dalify.data.dtypes import DALIDataType, DALIImageType
from dalify.registry import Parameters

__all__ = ["DecodeOptions", "HardwareDecoder", "decode"]


@dataclass(slots=True)
class DecodeOptions(Parameters):
    """What a decoded image is.

    Attributes:
        output_type: RGB, BGR, GRAY (luma), YCbCr (BT.601, studio range) or ANY_DATA (all channels as stored).
        dtype: element type. The full range of the stored values is mapped to that of the type: FLOAT is 0 to 1.
        adjust_orientation: rotate the image as its EXIF orientation tag specifies.
        use_fast_idct: JPEG only: a few percent faster; values differ by up to 9.
        jpeg_fancy_upsampling: accepted; chroma is always interpolated, as in DALI's CPU decoder.
    """

    output_type: DALIImageType = DALIImageType.RGB
    dtype: DALIDataType = DALIDataType.UINT8
    adjust_orientation: bool = True
    use_fast_idct: bool = False
    jpeg_fancy_upsampling: bool = False

    def shapes(self, encoded: Batch) -> tuple[np.ndarray, Any]:
        """Return the shapes of the decoded images of a chunk, and their headers; see `decoded_shapes`."""
        return decoded_shapes(encoded, self.output_type, self.adjust_orientation)


@dataclass(slots=True)
class HardwareDecoder(Parameters):
    """Options that have no effect.

    Attributes:
        hybrid_huffman_threshold: option of DALI's hardware decoder; accepted but ignored.
        hw_decoder_load: option of DALI's hardware decoder; accepted but ignored.
        preallocate_width_hint: option of DALI's hardware decoder; accepted but ignored.
        preallocate_height_hint: option of DALI's hardware decoder; accepted but ignored.
        device_memory_padding: option of DALI's hardware decoder; accepted but ignored.
        host_memory_padding: option of DALI's hardware decoder; accepted but ignored.
        device_memory_padding_jpeg2k: option of DALI's hardware decoder; accepted but ignored.
        host_memory_padding_jpeg2k: option of DALI's hardware decoder; accepted but ignored.
        affine: option of DALI's hardware decoder; accepted but ignored.
    """

    hybrid_huffman_threshold: int = 1000000
    hw_decoder_load: float = 0.65
    preallocate_width_hint: int = 0
    preallocate_height_hint: int = 0
    device_memory_padding: int = 16777216
    host_memory_padding: int = 8388608
    device_memory_padding_jpeg2k: int = 0
    host_memory_padding_jpeg2k: int = 0
    affine: bool = True


def decode(out: Any, encoded: Any, options: DecodeOptions, headers: Any, windows: np.ndarray | None = None) -> None:
    """Decode the images of a chunk, or a window of each; see `decode_group`."""
    decode_group(
        out,
        encoded,
        options.output_type,
        options.dtype,
        options.adjust_orientation,
        options.use_fast_idct,
        headers,
        windows,
    )
