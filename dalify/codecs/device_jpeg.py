"""Selects the decoder for JPEG files on an accelerator.

The first decoder that works is used: nvImageCodec, then torchvision. In emulation, the host decodes unless
``DALIFY_DEVICE_DECODER`` names a decoder. The host also decodes the files that the decoder cannot decode, and raises
the errors of damaged files.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import simplejpeg

from dalify.base.errors import ArgumentValueError, MissingPackageError, suggestion
from dalify.base.optional import torch
from dalify.base.processors import device_of_build
from dalify.codecs import nvimagecodec, torchvision_jpeg
from dalify.codecs.device_options import DeviceOptions
from dalify.codecs.image_format import Bytes
from dalify.data.dtypes import DALIDataType, DALIImageType

COLORS = (DALIImageType.RGB, DALIImageType.BGR, DALIImageType.GRAY)
"""The output types that decoders on the device support."""

_VARIABLE = "DALIFY_DEVICE_DECODER"
_HOST = "host"


class DeviceJpegDecoder(Protocol):
    """Decodes JPEG files to one device.

    Attributes:
        rotates: whether it can rotate images as their EXIF orientation tag specifies.
        returns_planes: whether it returns whole images, planes of RGB or gray, also for BGR and windows.
    """

    rotates: bool
    returns_planes: bool

    def decode(
        self,
        files: Sequence[Bytes],
        output_type: DALIImageType,
        windows: np.ndarray[Any, Any] | None,
        *,
        adjust_orientation: bool,
        parsed: Sequence[Any] | None = None,
    ) -> list[Any | None]:
        """Decode files on torch's current stream, without waiting for it.

        Args:
            files: JPEG files with 8 bits per component, uint8 ``[bytes]``.
            output_type: one of `COLORS`.
            windows: int64 ``[N, 4]``: y, x, height, width of the part of each image; None for whole images. Only for
                images that need no rotation.
            adjust_orientation: whether to rotate the images as their EXIF orientation tag specifies.
            parsed: result of `parsed_for` for the files; None: the files are parsed now.

        Returns:
            for each file, a tensor ``[height, width, channels]``, or ``[channels, height, width]`` if `returns_planes`,
            uint8; None if the host has to decode it.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    create: Callable[[str, DeviceOptions], DeviceJpegDecoder]
    parse: Callable[[Sequence[Bytes]], list[Any]] | None = None  # work that does not need the decoder


_KINDS = {
    "nvimgcodec": _Kind("nvImageCodec", nvimagecodec.NvImageCodecDecoder, nvimagecodec.parsed_streams),
    "torchvision": _Kind("torchvision", torchvision_jpeg.TorchvisionDecoder),
}


def chosen_decoder(device: str | None = None) -> tuple[str | None, str]:
    """Return the key of the decoder for a device, None for the host, and the reasons, for ``explain()``.

    Args:
        device: torch device; None for the device of the pipeline that is being built, or the device that torch finds.

    Raises:
        ArgumentValueError: the environment variable ``DALIFY_DEVICE_DECODER`` has an unknown value.
    """
    wanted = os.environ.get(_VARIABLE, "").lower()
    if wanted not in ("", _HOST, *_KINDS):
        known = [_HOST, *_KINDS]
        raise ArgumentValueError(
            f"the environment variable {_VARIABLE} is {wanted!r}.{suggestion(wanted, known)}",
            hint=f"Use one of {', '.join(known)}, or unset it.",
        )
    device = device or device_of_build()
    if wanted == _HOST:
        return None, f"{_VARIABLE} selects the host"
    if device is None or not (device.startswith("cuda") or (device == "cpu" and wanted)):
        return None, f"emulation; {_VARIABLE} can select a decoder" if device == "cpu" else "no CUDA device"
    reasons: list[str] = []
    for key, kind in _KINDS.items():
        if wanted and key != wanted:
            reasons.append(f"{kind.name}: {_VARIABLE} selects {wanted}")
            continue
        reason = _why_not(key, device)
        if reason is None:
            return key, "; ".join([kind.name, *reasons])
        reasons.append(f"{kind.name}: {reason}")
    return None, "; ".join(reasons)


@functools.cache
def _why_not(key: str, device: str) -> str | None:
    """Return why a decoder does not work on a device; None if it decodes a test image."""
    image = np.frombuffer(simplejpeg.encode_jpeg(np.full((16, 24, 3), 128, np.uint8)), np.uint8)
    try:
        has_device = device.startswith("cuda") and torch.cuda.is_available()
        with torch.cuda.device(device) if has_device else nullcontext():
            decoder = _KINDS[key].create(device, DeviceOptions())
            (found,) = decoder.decode([image], DALIImageType.RGB, None, adjust_orientation=True)
    except MissingPackageError as error:
        return f"{error.message} {error.hint}".rstrip(".")
    except Exception as error:  # incompatible packages, drivers and libraries raise any exception
        return str(error).strip().split("\n", 1)[0] or type(error).__name__
    is_decoded = found is not None and sorted(found.shape) == [3, 16, 24]
    return None if is_decoded else "it does not decode a test image"


def open_decoder(device: str, options: DeviceOptions, user: object = None) -> DeviceJpegDecoder | None:
    """Return the decoder of this process for a device and options; None for the host.

    Args:
        device: torch device.
        options: options of the decoder.
        user: object that uses the decoder; all decoders are closed when all users have been garbage-collected. None for
            a use that does not keep decoders open.
    """
    key, _ = chosen_decoder(device)
    if key is None:
        return None
    if user is not None and id(user) not in _users:
        _users.add(id(user))
        weakref.finalize(user, _end_use, id(user))  # also before the program ends, while the driver can free memory
    return _opened(key, device, options, os.getpid())


_users: set[int] = set()


def _end_use(user: int) -> None:
    _users.discard(user)
    if not _users:
        _opened.cache_clear()


def parsed_for(device: str, files: Sequence[Bytes]) -> list[Any] | None:
    """Parse JPEG files for the decoder of a device, in any thread; None if it has nothing to parse.

    Args:
        device: torch device.
        files: see `DeviceJpegDecoder`.
    """
    key, _ = chosen_decoder(device)
    parse = None if key is None else _KINDS[key].parse
    return None if parse is None else parse(files)


@functools.lru_cache(16)
def _opened(key: str, device: str, options: DeviceOptions, _process: int) -> DeviceJpegDecoder:
    return _KINDS[key].create(device, options)


def reason_against(arguments: Mapping[str, Any]) -> tuple[bool, str]:
    """Return whether images are decoded on the device, and by which decoder, or why not; for ``explain()``."""
    if arguments.get("dtype", DALIDataType.UINT8) != DALIDataType.UINT8:
        return False, "only uint8 images are decoded on the device"
    if arguments.get("output_type", DALIImageType.RGB) not in COLORS:
        return False, f"output_type {arguments['output_type']!s} is not decoded on the device"
    if arguments.get("use_fast_idct"):
        return False, "use_fast_idct is an option of the host decoder"
    key, reason = chosen_decoder()
    return key is not None, reason
