"""JPEG decoding on NVIDIA GPUs with torchvision, where nvImageCodec is not installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.optional import LazyModule, require, torch
from dalify.codecs.device_options import DeviceOptions
from dalify.codecs.image_format import Bytes
from dalify.data.batch import shared_tensor
from dalify.data.dtypes import DALIImageType

torchvision_io: Any = LazyModule("torchvision.io", "decoding on the GPU", "torchvision")


class TorchvisionDecoder:
    """Decodes chunks of JPEG files with one call of ``torchvision.io.decode_jpeg`` each.

    torchvision fails for the whole list if one file is damaged, and supports no windows, orientation or options. If it
    fails, the host decodes the chunk.

    Raises:
        MissingPackageError: torchvision is not installed.
    """

    rotates = False
    returns_planes = True

    def __init__(self, device: str, options: DeviceOptions) -> None:
        self._io = require(torchvision_io)
        self._device = device
        # torchvision writes on its own stream, which does not wait for the current stream, so it must not get memory
        # that may still be in use on the stream of the pipeline. Memory of this stream is not.
        self._stream = torch.cuda.Stream(device) if device.startswith("cuda") else None

    def decode(
        self,
        files: Sequence[Bytes],
        output_type: DALIImageType,
        windows: np.ndarray[Any, Any] | None,
        *,
        adjust_orientation: bool,
        parsed: Sequence[Any] | None = None,
    ) -> list[Any | None]:
        """Decode upright files to planes of whole images; see `DeviceJpegDecoder`."""
        mode = self._io.ImageReadMode.GRAY if output_type == DALIImageType.GRAY else self._io.ImageReadMode.RGB
        sources = [shared_tensor(data) for data in files]
        try:
            return self._planes(sources, mode)
        except RuntimeError as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            return [None] * len(files)

    def _planes(self, sources: list[Any], mode: Any) -> list[Any]:
        if self._stream is None:
            return self._io.decode_jpeg(sources, mode=mode, device=self._device)
        with torch.cuda.stream(self._stream):
            planes = self._io.decode_jpeg(sources, mode=mode, device=self._device)
        current = torch.cuda.current_stream(self._device)
        current.wait_stream(self._stream)
        for image in planes:
            image.record_stream(current)
        return planes
