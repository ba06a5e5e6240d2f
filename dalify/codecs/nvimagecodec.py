"""JPEG decoding on NVIDIA GPUs with nvImageCodec, the package ``nvidia.nvimgcodec``.

On torch's CPU device, which emulates a GPU, the same calls run on nvImageCodec's CPU backend.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import DeviceError
from dalify.base.optional import LazyModule, require, torch
from dalify.codecs.device_options import DeviceOptions
from dalify.codecs.image_format import Bytes
from dalify.data.dtypes import DALIImageType

nvimgcodec: Any = LazyModule("nvidia.nvimgcodec", "decoding on the GPU", "dalify[cuda12]")

_LEGACY_STREAM = 1  # DLPack's number of the default stream, which is 0 in CUDA
_CUDA_DECODER = "nvjpeg_cuda_decoder"
_HARDWARE_DECODER = "nvjpeg_hw_decoder"


def parsed_streams(files: Sequence[Bytes]) -> list[Any | None]:
    """Return the code streams of files; None for files with invalid headers. Needs no device.

    Args:
        files: see `DeviceJpegDecoder`; they must be kept alive as long as the streams.
    """
    codec = require(nvimgcodec)
    streams: list[Any | None] = []
    for data in files:
        try:
            streams.append(codec.CodeStream(data))
        except RuntimeError:
            streams.append(None)
    return streams


class NvImageCodecDecoder:
    """Decodes chunks of JPEG files with one call of nvImageCodec each. Thread-safe.

    Args:
        device: torch device: ``cuda``, ``cuda:1``, or ``cpu`` for nvImageCodec's CPU backend.
        options: options of DALI's decoders.

    Raises:
        MissingPackageError: nvImageCodec is not installed.
        Exception: any exception of nvImageCodec, for example if it does not support the driver.
    """

    rotates = True
    returns_planes = False

    def __init__(self, device: str, options: DeviceOptions) -> None:
        self._codec = codec = require(nvimgcodec)
        self._device = torch.device(device)
        self._lock = threading.Lock()
        if self._device.type == "cpu":
            number = codec.NVIMGCODEC_DEVICE_CPU_ONLY
        else:
            number = torch.cuda.current_device() if self._device.index is None else self._device.index
        self._decoder = codec.Decoder(
            device_id=number, backends=self._backends(options.hw_decoder_load), options=_option_text(options)
        )

    def _backends(self, hw_decoder_load: float) -> list[Any]:
        """Return the backends; on a GPU without nvImageCodec's CPU backend, because dalify's host decoder is used."""
        codec = self._codec
        kinds = codec.BackendKind
        if self._device.type == "cpu":
            return [codec.Backend(kinds.CPU_ONLY)]
        found = [codec.Backend(kinds.GPU_ONLY), codec.Backend(kinds.HYBRID_CPU_GPU)]
        if hw_decoder_load > 0:
            policy = codec.LoadHintPolicy.FIXED
            found.insert(0, codec.Backend(kinds.HW_GPU_ONLY, load_hint=hw_decoder_load, load_hint_policy=policy))
        return found

    def decode(
        self,
        files: Sequence[Bytes],
        output_type: DALIImageType,
        windows: np.ndarray[Any, Any] | None,
        *,
        adjust_orientation: bool,
        parsed: Sequence[Any] | None = None,
    ) -> list[Any | None]:
        """Decode files; see `DeviceJpegDecoder`.

        Raises:
            DeviceError: nvImageCodec fails for all files.
        """
        codec = self._codec
        streams: list[Any] = []
        readable: list[int] = []
        for index, whole in enumerate(parsed_streams(files) if parsed is None else parsed):
            if whole is None:
                continue
            stream = whole
            if windows is not None:
                y, x, height, width = windows[index].tolist()
                try:
                    stream = whole.get_sub_code_stream(region=codec.Region(y, x, y + height, x + width))
                except RuntimeError:
                    continue
            streams.append(stream)
            readable.append(index)
        found: list[Any | None] = [None] * len(files)
        if not streams:
            return found
        number = 0 if self._device.type == "cpu" else torch.cuda.current_stream(self._device).cuda_stream
        parameters = self._parameters(output_type, adjust_orientation)
        try:
            with self._lock:
                images = self._decoder.decode(streams, params=parameters, cuda_stream=number)
        except RuntimeError as error:  # for images that it cannot decode, nvImageCodec returns None
            raise DeviceError(
                f"nvImageCodec cannot decode on {self._device}: {str(error).strip().rstrip('.')}.",
                hint="If the device has no memory left, use a smaller batch_size. Set the environment variable "
                "DALIFY_DEVICE_DECODER=host to decode on the host.",
            ) from error
        for index, image in zip(readable, images, strict=True):
            if image is not None:
                found[index] = self._tensor(image, number)
        return found

    def _tensor(self, image: Any, stream: int) -> Any:
        """Return a tensor that keeps the image alive; nvImageCodec frees its memory in stream order."""
        if self._device.type == "cpu":  # nvImageCodec's DLPack needs the CUDA runtime
            return torch.from_numpy(np.asarray(image))
        # With the image itself, torch would query its device and look up the stream, which takes several times as long.
        return torch.from_dlpack(image.__dlpack__(stream=stream or _LEGACY_STREAM))

    def _parameters(self, output_type: DALIImageType, adjust_orientation: bool) -> Any:
        codec = self._codec
        formats = {
            DALIImageType.RGB: (codec.ColorSpec.SRGB, codec.SampleFormat.I_RGB),
            DALIImageType.BGR: (codec.ColorSpec.SRGB, codec.SampleFormat.I_BGR),
            DALIImageType.GRAY: (codec.ColorSpec.GRAY, codec.SampleFormat.I_Y),
        }
        color_spec, sample_format = formats[output_type]
        return codec.DecodeParams(
            apply_exif_orientation=adjust_orientation, color_spec=color_spec, sample_format=sample_format
        )


def _option_text(options: DeviceOptions) -> str:
    """Return DALI's options as a string for nvImageCodec. Chroma is interpolated, as on the host."""
    values = {
        ":fancy_upsampling": 1,
        f"{_CUDA_DECODER}:hybrid_huffman_threshold": options.hybrid_huffman_threshold,
        f"{_CUDA_DECODER}:device_memory_padding": options.device_memory_padding,
        f"{_CUDA_DECODER}:host_memory_padding": options.host_memory_padding,
    }
    if options.preallocate_width_hint > 0 and options.preallocate_height_hint > 0:
        values[f"{_HARDWARE_DECODER}:preallocate_width_hint"] = options.preallocate_width_hint
        values[f"{_HARDWARE_DECODER}:preallocate_height_hint"] = options.preallocate_height_hint
    return " ".join(f"{name}={value}" for name, value in values.items())
