"""Decoding of chunks of images, and their shapes, which are determined first to decode directly to the results."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import simplejpeg

from dalify.base import scratch
from dalify.base.errors import DTypeError, of_sample
from dalify.base.limits import current
from dalify.base.small_arrays import all_of, any_of, zeros
from dalify.codecs.color import channels_of, check_dtype
from dalify.codecs.image import decode_image, image_shape, jpeg_color_space
from dalify.codecs.image_format import Bytes
from dalify.codecs.jpeg import decode_shortened_jpeg
from dalify.codecs.jpeg_decoder import JpegDecoder
from dalify.codecs.jpeg_headers import JpegHeaders, read_jpeg_headers
from dalify.codecs.png import black_png
from dalify.data.batch import Batch
from dalify.data.dtypes import DALIDataType, DALIImageType
from dalify.data.samples import Samples
from dalify.data.spec import Spec

jpeg_decoder = JpegDecoder()

_BLANK_EXTENT = 256
_LARGEST_BLANK = 1 << 26


@dataclass(slots=True)
class ImageOptions:
    """Type and orientation of a decoded image.

    Attributes:
        output_type: RGB, BGR, GRAY (luma), YCbCr (BT.601, studio range) or ANY_DATA (all channels as stored).
        dtype: element type. The full range of the stored values is mapped to the full range of the type; FLOAT: 0 to 1.
        adjust_orientation: rotate the image as its EXIF orientation tag specifies.
        use_fast_idct: JPEG only: a few percent faster; single values differ by up to 21.
    """

    output_type: DALIImageType = DALIImageType.RGB
    dtype: DALIDataType = DALIDataType.UINT8
    adjust_orientation: bool = True
    use_fast_idct: bool = False


def decoder_rule(encoded: Spec, dtype: DALIDataType) -> Spec:
    """Return the output spec of a decoder: HWC of ``dtype``; the data determines the shape.

    Raises:
        DTypeError: the input is not encoded bytes, or images cannot have this dtype.
    """
    if encoded.dtype not in (None, DALIDataType.UINT8, DALIDataType.INT8) or encoded.ndim not in (None, 1):
        raise DTypeError(
            f"a decoder needs encoded files: one-dimensional samples of type uint8; got {encoded!r}.",
            hint="Pass only the first output of a reader: encoded, labels = fn.readers.file(...). "
            "If the data is already decoded, omit the decoder.",
        )
    check_dtype(dtype)
    return Spec(dtype, 3, "HWC", None, encoded.device)


def blank_image(data: Bytes) -> np.ndarray[Any, Any]:
    """Return an encoded black image that replaces an image that cannot be decoded, uint8 ``[bytes]``.

    Args:
        data: the data that cannot be decoded. The black image has the size in its header, if that can be read.
    """
    limits = current()
    # Within the limits for at most three channels of four bytes per pixel.
    max_pixels = max(1, min(_LARGEST_BLANK, limits.max_image_pixels, limits.max_sample_bytes // 12))
    height = width = min(_BLANK_EXTENT, math.isqrt(max_pixels))
    with suppress(Exception):
        rows, columns, _ = image_shape(data, adjust_orientation=False)
        if rows * columns <= max_pixels:  # a damaged header may declare any size
            height, width = rows, columns
    return np.frombuffer(bytearray(black_png(height, width)), np.uint8)


def decoded_shapes(
    encoded: Batch, output_type: DALIImageType, adjust_orientation: bool
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], JpegHeaders]:
    """Return height, width, channels of each image, int64 ``[N, 3]``, and the headers.

    Raises:
        Exception: any error of ``image_shape``, with the index of the sample.
    """
    headers = read_jpeg_headers(encoded)
    shapes = headers.shapes(adjust_orientation)
    if output_type != DALIImageType.ANY_DATA:
        shapes[:, 2] = channels_of(output_type, 3)
    others = headers.others()
    if others:
        samples = encoded.samples
        for index in others:
            try:
                shapes[index] = image_shape(samples[index], output_type, adjust_orientation, headers[index])
            except Exception as error:
                of_sample(error, index)
                raise
    return shapes, headers


def window_shapes(
    windows: np.ndarray[Any, Any], shapes: np.ndarray[Any, np.dtype[np.int64]]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the shapes of windows ``[N, 4]`` (y, x, height, width) of images of the given shapes, int64 ``[N, 3]``."""
    found = shapes.copy()
    found[:, :2] = windows[:, 2:]
    return found


def decode_group(
    out: Samples,
    encoded: Samples,
    options: ImageOptions,
    headers: JpegHeaders,
    windows: np.ndarray[Any, Any] | None,
    needed: np.ndarray[Any, Any] | None = None,
) -> None:
    """Decode images.

    Args:
        out: images ``[H, W, C]``, output.
        encoded: files, uint8 ``[bytes]``.
        options: type and orientation of the images.
        headers: headers from ``decoded_shapes``.
        windows: int64 ``[N, 4]``: y, x, height, width of the requested windows; None for whole images.
        needed: int64 ``[N, 4]``: y, x, height, width of the part of each result that is needed; the rest may be left
            undefined. None for the whole image.

    Raises:
        Exception: any error of ``decode_image`` and the libraries, with the index of the sample in the batch.
    """
    output_type, use_fast_idct = options.output_type, options.use_fast_idct
    is_usual = options.dtype == DALIDataType.UINT8 and output_type != DALIImageType.YCbCr
    is_plain = headers.are_plain(options.adjust_orientation) if is_usual else np.zeros(len(headers), np.bool_)
    is_decoded: np.ndarray[Any, Any] | None = None
    if not use_fast_idct and any_of(is_plain, None):
        is_decoded = _decode_compiled(out, encoded, output_type, headers, is_plain, windows, needed)
        if all_of(is_decoded, None):
            return
    if windows is not None:
        is_plain &= headers.contain(windows)
    first_rows = None if needed is None else needed[:, 0] + needed[:, 2]
    plain = _PlainImages(headers, output_type, use_fast_idct, windows, first_rows)
    for index, (target, data) in enumerate(zip(out.arrays(), encoded.arrays(), strict=True)):
        if is_decoded is not None and is_decoded[index]:
            continue
        try:
            if is_plain[index] and plain.has_decoded(index, data, target):
                continue
            decode_image(
                data,
                output_type,
                options.dtype,
                adjust_orientation=options.adjust_orientation,
                use_fast_idct=use_fast_idct,
                window=None if windows is None else tuple(windows[index].tolist()),
                out=target,
                first_rows=None if first_rows is None else int(first_rows[index]),
                jpeg_header=headers[index],
            )
        except Exception as error:
            of_sample(error, index)
            raise


def _decode_compiled(
    out: Samples,
    encoded: Samples,
    output_type: DALIImageType,
    headers: JpegHeaders,
    is_plain: np.ndarray[Any, np.dtype[np.bool_]],
    windows: np.ndarray[Any, Any] | None,
    needed: np.ndarray[Any, Any] | None,
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Decode plain images that contain their windows in one compiled call; return which were decoded, bool ``[N]``."""
    components, wanted = 3, is_plain
    if output_type == DALIImageType.ANY_DATA:  # the library decodes images with another number of channels
        components = int(headers.components[is_plain.argmax()])
        wanted = is_plain & (headers.components == components)
    colors, is_placed = jpeg_color_space(components, output_type), needed is not None
    if needed is not None:
        windows = needed
    elif windows is None:
        windows = zeros((len(encoded), 4), np.int64)
        windows[:, 2:] = headers.shapes(adjust_orientation=False)[:, :2]
    return jpeg_decoder.decode(encoded, out, colors, wanted, windows, is_placed=is_placed)


class _PlainImages:
    """Decodes plain images with the library, with minimal overhead; see ``JpegHeaders.are_plain``.

    Args:
        headers: headers of the images.
        output_type: see ``decode_image``.
        use_fast_idct: see ``decode_image``.
        windows: see ``decode_group``.
        first_rows: int64 ``[N]``: number of rows needed from the top; None for all.
    """

    __slots__ = ("_colors", "_extents", "_heights", "_positions", "_use_fast_idct", "_windows")

    def __init__(
        self,
        headers: JpegHeaders,
        output_type: DALIImageType,
        use_fast_idct: bool,
        windows: np.ndarray[Any, Any] | None,
        first_rows: np.ndarray[Any, Any] | None,
    ) -> None:
        stored = headers.shapes(adjust_orientation=False)
        if windows is not None:
            first_rows = windows[:, 0] + windows[:, 2]
        heights = np.zeros(len(headers), np.int64) if first_rows is None else headers.heights_for(first_rows)
        self._use_fast_idct = use_fast_idct
        self._colors = [jpeg_color_space(components, output_type) for components in stored[:, 2].tolist()]
        self._extents: list[list[int]] = stored[:, :2].tolist()
        self._heights: list[int] = heights.tolist()
        self._positions: list[int] = headers.positions().tolist()
        self._windows: list[list[int]] | None = None if windows is None else windows.tolist()

    def has_decoded(self, index: int, data: Bytes, target: np.ndarray[Any, Any]) -> bool:
        """Decode one image; return False if the library reports a problem, so that ``decode_image`` is needed."""
        if data.dtype != np.uint8:
            return False
        height, width = self._extents[index]
        colors, shortened = self._colors[index], self._heights[index]
        channels = 1 if colors == "GRAY" else 3
        if self._windows is None:
            pixels = target.reshape(-1)
        else:
            pixels = scratch.borrow("jpeg pixels", (height * width * channels,))
        if shortened:
            size = shortened * width * channels
            if not decode_shortened_jpeg(
                data, self._positions[index], shortened, colors, self._use_fast_idct, pixels[:size]
            ):
                return False
        else:
            try:
                simplejpeg.decode_jpeg(data, colors, fastdct=self._use_fast_idct, buffer=pixels)
            except ValueError:
                return False
        if self._windows is not None:
            y, x, rows, columns = self._windows[index]
            target[...] = pixels.reshape(height, width, channels)[y : y + rows, x : x + columns]
        return True
