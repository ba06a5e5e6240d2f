"""Decodes the images of a chunk to the memory of an accelerator: JPEG files on the device, all others on the host.

The host reads all headers, and decodes the images that the decoder of the device does not decode. So errors are the
same as on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dalify.base.errors import of_sample
from dalify.base.optional import torch
from dalify.base.processors import available_processors
from dalify.base.threads import in_parallel
from dalify.codecs.decode_batch import ImageOptions, decode_group
from dalify.codecs.device_jpeg import open_decoder, parsed_for
from dalify.codecs.device_options import DeviceOptions
from dalify.codecs.image_format import Bytes, as_bytes_array
from dalify.codecs.jpeg_check import is_complete
from dalify.codecs.jpeg_headers import JpegHeaders, read_jpeg_headers
from dalify.data.batch import Batch, block_offsets
from dalify.data.decoded_counts import DecodedCounts
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIImageType
from dalify.data.sample_memory import ChunkMemory
from dalify.data.samples import Samples

Integers = np.ndarray[Any, np.dtype[np.int64]]
_Interleave = Callable[[DeviceSamples, DeviceSamples, Integers | None], None]


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a chunk.

    Attributes:
        contents: uint8 ``[bytes]`` each.
        are_ordinary: which are complete JPEG files that decoders on devices support, bool ``[N]``.
        parsed: parsed data of each file, see `DeviceJpegDecoder`; None if nothing has been parsed.
    """

    contents: list[Bytes]
    are_ordinary: np.ndarray[Any, np.dtype[np.bool_]]
    parsed: list[Any] | None = None


def _files_of(encoded: Samples, headers: JpegHeaders) -> _Files:
    contents = [as_bytes_array(data) for data in encoded.arrays()]
    return _Files(contents, headers.are_ordinary() & [is_complete(data) for data in contents])


def parse_files(encoded: Batch, device: str) -> Any:
    """Parse files for the decoder of a device, before `decode_on_device`, in any thread.

    Args:
        encoded: see `decode_on_device`.
        device: torch device.

    Returns:
        the value for `Samples.parsed`; None if the decoder has nothing to parse.
    """
    files = _files_of(Samples.of_batch(encoded), read_jpeg_headers(encoded))
    indices = np.flatnonzero(files.are_ordinary).tolist()
    found = parsed_for(device, [files.contents[index] for index in indices])
    if found is None:
        return None
    parsed: list[Any] = [None] * len(files.contents)
    for index, item in zip(indices, found, strict=True):
        parsed[index] = item
    return _Files(files.contents, files.are_ordinary, parsed)


def decode_on_device(
    out: DeviceSamples,
    encoded: Samples,
    options: ImageOptions,
    device_options: DeviceOptions,
    headers: JpegHeaders,
    windows: Integers | None,
    cache: ChunkMemory | None,
    counts: DecodedCounts | None,
    *,
    interleave: _Interleave,
) -> None:
    """Decode images of type uint8 to memory on the device, without waiting for the device.

    Args:
        out: images ``[H, W, C]``, output.
        encoded: files on the host, uint8 ``[bytes]``, perhaps with the result of `parse_files`.
        options: type and orientation of the images; see `device_jpeg.reason_against`.
        device_options: options of the decoder on the device.
        headers: headers from ``decoded_shapes``.
        windows: see ``decode_group``.
        cache: cache of decoded images on the device; None without one. Its images are not decoded.
        counts: counters to which the images of the chunk are added, or None. The decoder is closed when all counters
            have been garbage-collected.
        interleave: copies windows of planes, for decoders that return planes: a function of images ``[H, W, C]``,
            output, planes ``[C, H, W]``, and the row and column of the windows, int64 ``[N, 2]`` or None.

    Raises:
        Exception: any error of ``decode_group``.
    """
    images: list[Any] = [None] * len(encoded)
    is_missing = np.ones(len(encoded), np.bool_)
    sizes = out.shapes.prod(1)
    if cache is not None:
        # A file may have changed after it was read.
        images = [
            image if image is not None and len(image) == size else None
            for image, size in zip(cache.find(), sizes.tolist(), strict=True)
        ]
        is_missing = np.array([image is None for image in images], np.bool_)
    returned = 0
    decoder = open_decoder(str(out.device), device_options, counts)
    if decoder is not None:
        files: _Files = encoded.parsed or _files_of(encoded, headers)
        chosen = is_missing & files.are_ordinary
        if options.adjust_orientation and not (decoder.rotates and windows is None):
            chosen &= headers.are_upright()
        if windows is not None:
            chosen &= headers.contain(windows)
        indices = np.flatnonzero(chosen)
        if len(indices):
            places = indices.tolist()
            parts = None if windows is None else windows[indices]
            found = decoder.decode(
                [files.contents[index] for index in places],
                options.output_type,
                parts,
                adjust_orientation=options.adjust_orientation,
                parsed=None if files.parsed is None else [files.parsed[index] for index in places],
            )
            if decoder.returns_planes:
                found = _interleaved(found, options.output_type, parts, interleave)
            for index, image, shape in zip(places, found, out.shapes[indices].tolist(), strict=True):
                if image is not None and list(image.shape) == shape:
                    images[index] = image.reshape(-1)
                else:
                    returned += 1
    remaining = np.array([index for index, image in enumerate(images) if image is None], np.int64)
    if len(remaining):
        decoded = _decode_on_host(out, encoded, options, headers, windows, remaining)
        for index, image in zip(remaining.tolist(), decoded, strict=True):
            images[index] = image
    if counts is not None:
        counts.total += int(is_missing.sum())
        counts.on_host += len(remaining)
        counts.returned += returned
    if cache is not None:
        for index in np.flatnonzero(is_missing).tolist():
            cache.add(index, images[index])
    if int(sizes.sum()) == len(out.block):
        torch.cat(images, out=out.block)  # one launch for all
        return
    for image, start, size in zip(images, out.offsets.tolist(), sizes.tolist(), strict=True):
        out.block[start : start + size] = image


def _interleaved(
    images: Sequence[Any | None], output_type: DALIImageType, windows: Integers | None, interleave: _Interleave
) -> list[Any | None]:
    """Return images ``[H, W, C]``, or a window of each, of planes; all are copied together."""
    found: list[Any | None] = [None] * len(images)
    planes: dict[int, Any] = {}
    for index, image in enumerate(images):
        if image is None:
            continue
        extents = np.array(image.shape[1:])
        # The host decodes the window of an image that is not as large as its header says.
        if windows is None or (windows[index, 2:].all() and (windows[index, :2] + windows[index, 2:] <= extents).all()):
            planes[index] = image
    if not planes:
        return found
    shapes = np.array([image.shape for image in planes.values()], np.int64)
    sizes = shapes.prod(1)
    if output_type == DALIImageType.BGR:
        block = torch.cat([image[channel].reshape(-1) for image in planes.values() for channel in (2, 1, 0)])
    else:
        block = torch.cat([image.reshape(-1) for image in planes.values()])
    source = DeviceSamples(block, np.cumsum(sizes) - sizes, shapes)
    chosen = None if windows is None else windows[list(planes)]
    extents = shapes[:, 1:] if chosen is None else chosen[:, 2:]
    target = DeviceSamples.empty(np.column_stack([extents, shapes[:, 0]]), block.dtype, block.device)
    start = None if chosen is None else chosen[:, :2]
    interleave(target, source.stacked() if source.is_uniform else source, start)
    for index, image in zip(planes, target.tensors(), strict=True):
        found[index] = image
    return found


def _decode_on_host(
    out: DeviceSamples,
    encoded: Samples,
    options: ImageOptions,
    headers: JpegHeaders,
    windows: Integers | None,
    indices: Integers,
) -> list[Any]:
    """Decode some of the images on the host, and copy them to the device at once; return their elements."""
    shapes = out.shapes[indices]
    offsets, size_bytes = block_offsets(shapes, 1)
    # torch does not reuse page-locked memory before copies from it are complete.
    staging = torch.empty(size_bytes, dtype=torch.uint8, pin_memory=out.device.type == "cuda")
    dtype = np.dtype(np.uint8)
    target = Samples(offsets + staging.data_ptr(), shapes, dtype, staging)

    def decode(part: Integers) -> None:
        chosen = indices[part]
        try:
            decode_group(
                target.take(part),
                encoded.take(chosen),
                options,
                headers.take(chosen),
                None if windows is None else windows[chosen],
            )
        except Exception as error:
            sample = getattr(error, "sample", None)
            if isinstance(sample, int):
                of_sample(error, int(chosen[sample]))
            raise

    # In several threads, because the stage of the device has only one thread of the pipeline.
    parts = np.array_split(np.arange(len(indices)), min(len(indices), available_processors()))
    in_parallel([partial(decode, part) for part in parts])
    block = staging.to(out.device, non_blocking=True)
    sizes = shapes.prod(1).tolist()
    return [block[start : start + size] for start, size in zip(offsets.tolist(), sizes, strict=True)]
