"""Options of decoders of images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dalify.base import scratch
from dalify.codecs.decode_batch import ChunkDecoder, decode_group, decoded_shapes
from dalify.codecs.decode_on_device import decode_on_device
from dalify.codecs.device_options import DeviceOptions
from dalify.data import Batch
from dalify.data.batch import block_offsets
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType, DALIImageType
from dalify.data.sample_memory import ChunkMemory
from dalify.data.samples import Samples
from dalify.registry import Parameters

__all__ = ["DecodeOptions", "HardwareDecoder", "decode", "decoded_in_parts"]

# Of decoded images that are in memory together, without the last one. Fewer images need more calls, which each wait for
# the GIL.
_PART_BYTES = 4 << 20


@dataclass(slots=True)
class DecodeOptions(Parameters):
    """What a decoded image is.

    Attributes:
        output_type: RGB, BGR, GRAY (luma), YCbCr (BT.601, studio range) or ANY_DATA (all channels as stored).
        dtype: element type. The full range of the stored values is mapped to that of the type: FLOAT is 0 to 1.
        adjust_orientation: rotate the image as its EXIF orientation tag specifies.
        use_fast_idct: JPEG only: a few percent faster; single values differ by up to 21.
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
    """Options of decoding with ``device="mixed"``.

    They have an effect if nvImageCodec decodes on the GPU, see ``Pipeline.explain``; otherwise none.

    Attributes:
        hybrid_huffman_threshold: images with more pixels than this are decoded with the Huffman decoder of the host.
        hw_decoder_load: fraction of the images that the hardware JPEG engine decodes, where the GPU has one.
        preallocate_width_hint: width of images for which the hardware engine allocates memory in advance.
        preallocate_height_hint: height of images for which the hardware engine allocates memory in advance.
        device_memory_padding: minimum size in bytes of the decoder's buffers on the GPU.
        host_memory_padding: minimum size in bytes of the decoder's page-locked buffers.
        device_memory_padding_jpeg2k: accepted without effect: JPEG 2000 is decoded on the host.
        host_memory_padding_jpeg2k: accepted without effect: JPEG 2000 is decoded on the host.
        affine: accepted without effect: threads are not bound to cores.
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

    def on_device(self) -> DeviceOptions:
        """Return the options of the decoder on the device."""
        return DeviceOptions(
            self.hw_decoder_load,
            self.hybrid_huffman_threshold,
            self.preallocate_width_hint,
            self.preallocate_height_hint,
            self.device_memory_padding,
            self.host_memory_padding,
        )


def decode(
    out: Samples | DeviceSamples,
    encoded: Samples,
    options: DecodeOptions,
    hardware: HardwareDecoder,
    headers: Any,
    windows: np.ndarray | None = None,
    *,
    needed: np.ndarray | None = None,
    cache: ChunkMemory | None = None,
) -> None:
    """Decode the images of a chunk, or a window of each; see `decode_group` and, on the device, `decode_on_device`."""
    output_type, adjust_orientation = options.output_type, options.adjust_orientation
    if isinstance(out, Samples):
        decode_group(
            out,
            encoded,
            output_type,
            options.dtype,
            adjust_orientation,
            options.use_fast_idct,
            headers,
            windows,
            needed,
        )
    else:
        decode_on_device(out, encoded, hardware.on_device(), output_type, adjust_orientation, headers, windows, cache)


def decoded_in_parts(
    encoded: Samples, options: DecodeOptions, headers: Any, shapes: np.ndarray, needed: np.ndarray
) -> tuple[Samples, Iterator[slice]]:
    """Return the images of a chunk, which are decoded a few at a time, and an iterator that decodes them.

    Args:
        encoded: see `decode_group`.
        options: what a decoded image is; of uint8.
        headers: see `decode_group`.
        shapes: int64 ``[N, 3]``: shapes of the images.
        needed: see `decode_group`.

    Returns:
        all images, in memory that they share, and the parts of the chunk: the images of a part are valid from the time
        when the iterator yields it until it is advanced. It raises the errors of `decode_group`.
    """
    offsets, size_bytes = block_offsets(shapes, 1)
    number = offsets // _PART_BYTES
    bounds = [0, *(np.flatnonzero(number[1:] != number[:-1]) + 1).tolist(), len(shapes)]
    first = offsets[bounds[:-1]]
    most = int((np.append(first[1:], size_bytes) - first).max())
    memory = scratch.borrow("decoded images", (most,))
    addresses = offsets - np.repeat(first, np.diff(bounds)) + memory.__array_interface__["data"][0]
    images = Samples(addresses, shapes, memory.dtype, memory)

    def parts() -> Iterator[slice]:
        decoder = ChunkDecoder(
            images, encoded, options.output_type, options.dtype, options.adjust_orientation, options.use_fast_idct,
            headers, None, needed,
        )  # fmt: skip
        for start, stop in pairwise(bounds):
            part = slice(start, stop)
            decoder.decode(part)
            yield part

    return images, parts()
