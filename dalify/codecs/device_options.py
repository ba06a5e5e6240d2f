"""The options of decoders on the device."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DeviceOptions"]


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """Options of decoders on the device, as in DALI; torchvision ignores them.

    They are the arguments of `HardwareDecoder` that have an effect; immutable, because they are keys of a cache.

    Attributes:
        hw_decoder_load: fraction of a chunk that the hardware engine decodes, if the device has one; 0 to 1.
        hybrid_huffman_threshold: images with more pixels are decoded with the Huffman decoder of the host.
        preallocate_width_hint: width in pixels for which the hardware engine allocates memory; 0: on demand.
        preallocate_height_hint: the same for the height.
        device_memory_padding: minimum size in bytes of a decoder's memory on the device.
        host_memory_padding: minimum size in bytes of a decoder's page-locked memory.
    """

    hw_decoder_load: float = 0.65
    hybrid_huffman_threshold: int = 1000000
    preallocate_width_hint: int = 0
    preallocate_height_hint: int = 0
    device_memory_padding: int = 16777216
    host_memory_padding: int = 8388608
