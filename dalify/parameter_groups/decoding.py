"""Options of decoders of images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.base import scratch
from dalify.codecs.decode_batch import ImageOptions, blank_image, decode_group, decoded_shapes, window_shapes
from dalify.codecs.decode_on_device import decode_on_device, parse_files
from dalify.codecs.device_jpeg import reason_against
from dalify.codecs.device_options import DeviceOptions
from dalify.data import Batch, DeviceSamples, Samples
from dalify.data.batch import block_offsets
from dalify.data.decoded_counts import DecodedCounts
from dalify.data.sample_memory import ChunkMemory
from dalify.kernels.arrays.windows_torch import interleave_samples_torch
from dalify.registry import KernelOperator, Parameters

_CHANNELS = 3


@dataclass(slots=True)
class DecodeOptions(ImageOptions, Parameters):
    """Options of decoders of images.

    Attributes:
        jpeg_fancy_upsampling: accepted but ignored: chroma is always interpolated, as in DALI's CPU decoder.
    """

    jpeg_fancy_upsampling: bool = False

    def shapes(self, encoded: Batch) -> tuple[np.ndarray, Any]:
        """Return the shapes of the decoded images of a chunk, and their headers; see `decoded_shapes`."""
        return decoded_shapes(encoded, self.output_type, self.adjust_orientation)


@dataclass(frozen=True, slots=True)
class HardwareDecoder(DeviceOptions, Parameters):
    """Options of decoding with ``device="mixed"``.

    They have an effect if nvImageCodec decodes on the GPU, see ``Pipeline.explain``; otherwise none.

    Attributes:
        device_memory_padding_jpeg2k: accepted but ignored: JPEG 2000 is decoded on the host.
        host_memory_padding_jpeg2k: accepted but ignored: JPEG 2000 is decoded on the host.
        affine: accepted but ignored: threads are not bound to cores.
    """

    device_memory_padding_jpeg2k: int = 0
    host_memory_padding_jpeg2k: int = 0
    affine: bool = True


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
    counts: DecodedCounts | None = None,
) -> None:
    """Decode the images of a chunk, or a window of each; see `decode_group` and, on the device, `decode_on_device`."""
    if isinstance(out, Samples):
        decode_group(out, encoded, options, headers, windows, needed)
    else:
        decode_on_device(
            out, encoded, options, hardware, headers, windows, cache, counts, interleave=interleave_samples_torch
        )


def decode_windows(
    out: Samples | DeviceSamples,
    encoded: Samples,
    *_: Any,
    options: DecodeOptions,
    hardware: HardwareDecoder,
    windows: np.ndarray,
    headers: Any,
    counts: DecodedCounts | None = None,
) -> None:
    """Kernel of both devices for decoders whose `prepare` function returns `windows`."""
    decode(out, encoded, options, hardware, headers, windows, counts=counts)


def decode_parts(
    out: Samples | DeviceSamples,
    encoded: Samples,
    *,
    options: DecodeOptions,
    hardware: HardwareDecoder,
    needed: np.ndarray,
    headers: Any,
    counts: DecodedCounts | None = None,
) -> None:
    """Kernel of both devices for decoders whose `prepare` function returns the parts that are `needed`.

    The device decodes whole images: windows would have to be copied to their positions, see docs/accelerators.md.
    """
    decode(out, encoded, options, hardware, headers, needed=needed, counts=counts)


def decode_needed(
    encoded: Samples,
    options: DecodeOptions,
    headers: Any,
    shapes: np.ndarray,
    needed: np.ndarray,
    memory: np.ndarray,
) -> tuple[Samples, Callable[[], None]]:
    """Return images of which only the needed part is in memory until the next call, and the function that decodes them.

    Args:
        encoded: see `decode_group`.
        options: the options of the decoder; images have three channels of uint8.
        headers: see `decode_group`.
        shapes: int64 ``[N, 3]``: shapes of the images.
        needed: see `decode_group`.
        memory: uint8, C-contiguous: for as many of the images as it can hold.
    """
    extents = window_shapes(needed, shapes)
    places, size_bytes = block_offsets(extents, 1)
    if size_bytes > memory.nbytes:
        kept = int(np.searchsorted(places[1:], memory.nbytes, "right"))
        rest = scratch.borrow("needed parts of images", (size_bytes - int(places[kept]),))
        places[kept:] += rest.__array_interface__["data"][0] - places[kept]
    else:
        kept, rest = len(places), memory
    places[:kept] += memory.__array_interface__["data"][0]
    owners = memory, rest
    strides = np.empty_like(shapes)
    strides[:, 0] = needed[:, 3] * _CHANNELS
    strides[:, 1:] = _CHANNELS, 1
    first = needed[:, 0] * strides[:, 0] + needed[:, 1] * _CHANNELS
    images = Samples(places - first, shapes, memory.dtype, owners, strides)

    def fill() -> None:
        decode_group(Samples(places, extents, memory.dtype, owners), encoded, options, headers, needed)

    return images, fill


def attach_decoding(operator: KernelOperator, kernel: Callable[..., None]) -> None:
    """Attach the kernel of a decoder for both devices, and the replacement of bad samples."""
    operator.cpu_samples(kernel)
    operator.mixed_samples(reason_against, checked_by="_check_image", parse=parse_files)(kernel)
    operator.substitute(blank_image)
