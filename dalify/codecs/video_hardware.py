"""Hardware decoders for videos, selected by the environment variable ``DALIFY_VIDEO_DECODER``.

FFmpeg decodes packets with the hardware and returns the frames in memory of the host. H.264, HEVC, VP8, VP9 and AV1
define every bit of a decoded frame, so results are the same. The host decodes the codecs that the hardware does not
support.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from dalify.base.errors import ArgumentValueError, DeviceError, suggestion
from dalify.base.optional import LazyModule
from dalify.base.processors import HOST_DECODER, VIDEO_VARIABLE, video_hardware

av: Any = LazyModule("av", "decoding videos", "dalify[video]")

# A codec that every hardware decoder supports, to test the hardware.
_COMMON_CODEC = "h264"


def hardware_decoder() -> Any:
    """Return the ``av.codec.hwaccel.HWAccel`` for opening a video; None for the host.

    Raises:
        ArgumentValueError: the environment variable has an unknown value.
        DeviceError: the hardware cannot be used.
    """
    value = video_hardware()
    return None if value is None else _opened(value, os.getpid())


@functools.lru_cache(4)
def _opened(value: str, _process: int) -> Any:
    kind, _, number = value.partition(":")
    known = av.codec.hwaccel.hwdevices_available()
    if kind not in known:
        raise ArgumentValueError(
            f"the environment variable {VIDEO_VARIABLE} is {value!r}.{suggestion(kind, [HOST_DECODER, *known])}",
            hint=f"Use one of {', '.join([HOST_DECODER, *known])}, with a device as in 'cuda:1', or unset the "
            "variable.",
        )
    # With CUDA, FFmpeg creates its own context, because it rejects torch's context, which has other flags.
    decoder = av.codec.hwaccel.HWAccel(kind, number or None, allow_software_fallback=True)
    try:
        decoder.create(av.codec.Codec(_COMMON_CODEC, "r"))
    except (av.FFmpegError, NotImplementedError, ValueError) as error:
        raise hardware_error(error) from None
    return decoder


def hardware_error(error: Exception) -> DeviceError:
    """Return the error to raise if the hardware fails with an error of PyAV."""
    reason = str(getattr(error, "strerror", None) or error).rstrip(".")
    value = os.environ.get(VIDEO_VARIABLE, "").lower()
    return DeviceError(
        f"the environment variable {VIDEO_VARIABLE} selects {value!r}, but this hardware cannot decode videos "
        f"({reason}).",
        hint="Unset the variable to decode on the CPU.",
    )
