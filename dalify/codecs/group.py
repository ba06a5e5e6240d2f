"""What the picture decoders share.

Shapes are told before decoding, so that pixels go straight to where they are wanted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import simplejpeg

from dalify.base.errors import DTypeError, of_sample
from dalify.base.limits import current
from dalify.codecs import scratch
from dalify.codecs.colour import channels_of, check_dtype
from dalify.codecs.image import decode_image, image_shape, jpeg_colours
from dalify.codecs.jpeg import decode_shortened_jpeg
from dalify.codecs.jpeg_headers import JpegHeaders, read_jpeg_headers
from dalify.codecs.png import black_png
from dalify.codecs.signature import Bytes
from dalify.data.batch import Batch
from dalify.data.dtypes import DALIDataType, DALIImageType
from dalify.data.spec import Spec

__all__ = ["blank_picture", "decode_group", "decoded_shapes", "decoder_rule", "window_shapes"]


_BLANK_EXTENT = 256
_LARGEST_BLANK = 1 << 26


def decoder_rule(encoded: Spec, dtype: DALIDataType) -> Spec:
    """Return what a decoder gives: HWC of ``dtype``; the shape is told by the data.

    Raises:
        DTypeError: the input is not made of encoded bytes, or images cannot have the type.
    """
    if encoded.dtype not in (None, DALIDataType.UINT8, DALIDataType.INT8) or encoded.ndim not in (None, 1):
        raise DTypeError(
            f"a decoder needs encoded files as they are: one-dimensional samples of type UINT8; got {encoded!r}.",
            hint="Arrays that are images already need no decoder.",
        )
    check_dtype(dtype)
    return Spec(dtype, 3, "HWC", None, encoded.device)


def blank_picture(data: Bytes) -> np.ndarray[Any, Any]:
    """Return an encoded black picture for the place of one that cannot be decoded, uint8 ``[bytes]``.

    Args:
        data: what cannot be decoded. Where at least its header can be read, the black picture has its size.
    """
    limits = current()
    # It must not fail as the sample did: three channels of four bytes are the most that a decoder makes of a pixel.
    most_pixels = max(1, min(_LARGEST_BLANK, limits.max_image_pixels, limits.max_sample_bytes // 12))
    height = width = min(_BLANK_EXTENT, math.isqrt(most_pixels))
    with suppress(Exception):
        rows, columns, _ = image_shape(data, adjust_orientation=False)
        if rows * columns <= most_pixels:  # a damaged header may declare any size
            height, width = rows, columns
    return np.frombuffer(bytearray(black_png(height, width)), np.uint8)


def decoded_shapes(
    encoded: Batch, output_type: DALIImageType, adjust_orientation: bool
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], JpegHeaders]:
    """Return height, width, channels of each image, int64 ``[N, 3]``, and what is known of the headers.

    Args:
        encoded: encoded images.
        output_type: see decode_image.
        adjust_orientation: see decode_image.

    Raises:
        Exception: what ``image_shape`` raises, with the number of the sample.
    """
    headers = read_jpeg_headers(encoded)
    shapes = headers.shapes(adjust_orientation)
    if output_type != DALIImageType.ANY_DATA:
        shapes[:, 2] = channels_of(output_type, 3)
    others = np.flatnonzero(~(headers.is_known & headers.are_within_limits()))
    if len(others):
        samples = encoded.samples
        for index in others.tolist():
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
    out: np.ndarray[Any, Any] | Sequence[np.ndarray[Any, Any]],
    encoded: Sequence[Bytes],
    output_type: DALIImageType,
    dtype: DALIDataType,
    adjust_orientation: bool,
    use_fast_idct: bool,
    headers: JpegHeaders,
    windows: np.ndarray[Any, Any] | None = None,
    first_rows: np.ndarray[Any, Any] | None = None,
) -> None:
    """Decode images.

    Args:
        out: N arrays ``[H, W, C]`` of ``dtype``, to be filled. What is empty is not decoded.
        encoded: N times uint8 ``[bytes]``.
        output_type: see decode_image.
        dtype: see decode_image.
        adjust_orientation: see decode_image.
        use_fast_idct: see decode_image.
        headers: what ``decoded_shapes`` found.
        windows: ``[N, 4]`` y, x, height, width of the parts that are wanted; the whole images where None.
        first_rows: ``[N]`` how many rows from the top are wanted; the others may be left undefined. All where None.

    Raises:
        Exception: what ``decode_image`` and the libraries raise, with the number of the sample within the group.
    """
    plain = _Plain(headers, output_type, dtype, adjust_orientation, use_fast_idct, windows, first_rows)
    for index, (target, data) in enumerate(zip(out, encoded, strict=True)):
        if not target.size:
            continue
        try:
            if plain.has_decoded(index, data, target):
                continue
            decode_image(
                data,
                output_type,
                dtype,
                adjust_orientation=adjust_orientation,
                use_fast_idct=use_fast_idct,
                window=None if windows is None else tuple(windows[index].tolist()),
                out=target,
                first_rows=None if first_rows is None else int(first_rows[index]),
                jpeg_header=headers[index],
            )
        except Exception as error:
            of_sample(error, index)
            raise


class _Plain:
    """Decodes what most images are, with as little Python for each as there can be: upright sequential JPEG to bytes.

    Whatever the library complains about is left to ``decode_image``.
    """

    __slots__ = ("_colors", "_heights", "_is_plain", "_positions", "_use_fast_idct", "_widths", "_windows")

    def __init__(
        self,
        headers: JpegHeaders,
        output_type: DALIImageType,
        dtype: DALIDataType,
        adjust_orientation: bool,
        use_fast_idct: bool,
        windows: np.ndarray[Any, Any] | None,
        first_rows: np.ndarray[Any, Any] | None,
    ) -> None:
        stored = headers.shapes(adjust_orientation=False)
        count = len(headers)
        self._use_fast_idct = use_fast_idct
        if dtype != DALIDataType.UINT8 or output_type == DALIImageType.YCbCr:
            self._is_plain = [False] * count
            return
        plain = headers.are_plain(adjust_orientation)
        if windows is not None:
            bottom, right = windows[:, 0] + windows[:, 2], windows[:, 1] + windows[:, 3]
            inside = (windows >= 0).all(1) & (bottom <= stored[:, 0]) & (right <= stored[:, 1])
            plain = plain & inside
            first_rows = bottom
        heights = np.zeros(count, np.int64) if first_rows is None else headers.heights_for(first_rows)
        self._is_plain: list[bool] = plain.tolist()
        self._heights: list[int] = heights.tolist()
        self._positions: list[int] = headers.positions().tolist()
        self._colors = [jpeg_colours(components, output_type) for components in stored[:, 2].tolist()]
        self._widths: list[list[int]] = stored[:, :2].tolist()
        self._windows: list[list[int]] | None = None if windows is None else windows.tolist()

    def has_decoded(self, index: int, data: Bytes, target: np.ndarray[Any, Any]) -> bool:
        """Decode one image; False where that is not done here."""
        if not self._is_plain[index] or data.dtype != np.uint8:
            return False
        height, width = self._widths[index]
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
