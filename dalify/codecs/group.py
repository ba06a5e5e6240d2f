"""What the picture decoders share.

Shapes are told before decoding, so that pixels go straight to where they are wanted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dalify.base.errors import DTypeError, of_sample
from dalify.base.limits import current
from dalify.codecs.colour import check_dtype
from dalify.codecs.image import decode_image, image_shape
from dalify.codecs.jpeg import JpegHeader, read_jpeg_header
from dalify.codecs.png import black_png
from dalify.codecs.signature import Bytes, as_bytes_array, picture_format
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
    samples: Sequence[Bytes],
    output_type: DALIImageType,
    adjust_orientation: bool,
    jpeg_headers: list[JpegHeader | None] | None = None,
) -> list[tuple[int, int, int]]:
    """Return height, width, channels of each image.

    Args:
        samples: encoded images.
        output_type: see decode_image.
        adjust_orientation: see decode_image.
        jpeg_headers: gets the header of each JPEG, None for other files, so that decoding need not read it again.

    Raises:
        Exception: what ``image_shape`` raises, with the number of the sample.
    """
    shapes: list[tuple[int, int, int]] = []
    for index, data in enumerate(samples):
        header = None
        try:
            if jpeg_headers is not None:
                encoded = as_bytes_array(data)
                header = read_jpeg_header(encoded) if picture_format(encoded) == "JPEG" else None
            shapes.append(image_shape(data, output_type, adjust_orientation, header))
        except Exception as error:
            of_sample(error, index)
            raise
        if jpeg_headers is not None:
            jpeg_headers.append(header)
    return shapes


def window_shapes(windows: np.ndarray[Any, Any], shapes: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return the shapes of windows ``[N, 4]`` (y, x, height, width) of images of the given shapes."""
    return [(rows, columns, shape[2]) for (_, _, rows, columns), shape in zip(windows.tolist(), shapes, strict=True)]


def decode_group(
    out: np.ndarray[Any, Any] | Sequence[np.ndarray[Any, Any]],
    encoded: Sequence[Bytes],
    output_type: DALIImageType,
    dtype: DALIDataType,
    adjust_orientation: bool,
    use_fast_idct: bool,
    windows: np.ndarray[Any, Any] | None = None,
    first_rows: np.ndarray[Any, Any] | None = None,
    jpeg_headers: Sequence[JpegHeader | None] | None = None,
) -> None:
    """Decode images.

    Args:
        out: N arrays ``[H, W, C]`` of ``dtype``, to be filled. What is empty is not decoded.
        encoded: N times uint8 ``[bytes]``.
        output_type: see decode_image.
        dtype: see decode_image.
        adjust_orientation: see decode_image.
        use_fast_idct: see decode_image.
        windows: ``[N, 4]`` y, x, height, width of the parts that are wanted; the whole images where None.
        first_rows: ``[N]`` how many rows from the top are wanted; the others may be left undefined. All where None.
        jpeg_headers: what ``decoded_shapes`` found, one per image.

    Raises:
        Exception: what ``decode_image`` and the libraries raise, with the number of the sample within the group.
    """
    for index, target in enumerate(out):
        if not target.size:
            continue
        window = None if windows is None else tuple(windows[index].tolist())
        try:
            decode_image(
                encoded[index],
                output_type,
                dtype,
                adjust_orientation=adjust_orientation,
                use_fast_idct=use_fast_idct,
                window=window,
                out=target,
                first_rows=None if first_rows is None else int(first_rows[index]),
                jpeg_header=None if jpeg_headers is None else jpeg_headers[index],
            )
        except Exception as error:
            of_sample(error, index)
            raise
