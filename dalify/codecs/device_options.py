"""The options of decoders on the device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """Options of decoders on the device, as in DALI; torchvision ignores them. Immutable: they are keys of a cache.

    Attributes:
        hybrid_huffman_threshold: images with more pixels than this are decoded with the Huffman decoder of the host.
        hw_decoder_load: fraction of the images that the hardware JPEG engine decodes, where the GPU has one.
        preallocate_width_hint: width of images for which the hardware engine allocates memory in advance.
        preallocate_height_hint: height of images for which the hardware engine allocates memory in advance.
        device_memory_padding: minimum size in bytes of the decoder's buffers on the GPU.
        host_memory_padding: minimum size in bytes of the decoder's page-locked buffers.
    """

    hybrid_huffman_threshold: int = 1000000
    hw_decoder_load: float = 0.65
    preallocate_width_hint: int = 0
    preallocate_height_hint: int = 0
    device_memory_padding: int = 16777216
    host_memory_padding: int = 8388608
