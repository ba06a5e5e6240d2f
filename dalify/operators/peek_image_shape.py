"""Read the shapes of images without decoding them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, option_error_text
from dalify.codecs.decode_batch import blank_image, decoded_shapes, decoder_rule
from dalify.data import Batch, DALIDataType, DALIImageType, Samples
from dalify.registry import Spec, operator

_DTYPES = (
    DALIDataType.INT64,
    DALIDataType.UINT64,
    DALIDataType.INT32,
    DALIDataType.UINT32,
    DALIDataType.FLOAT,
    DALIDataType.FLOAT64,
)


@operator
def peek_image_shape(
    encoded: Spec,
    /,
    *,
    image_type: DALIImageType = DALIImageType.RGB,
    dtype: DALIDataType = DALIDataType.INT64,
    adjust_orientation: bool = True,
) -> Spec:
    """Read the shape of the decoded image from its header, which takes a few microseconds.

    Args:
        encoded: contents of the files, uint8 ``[bytes]``.
        image_type: the ``output_type`` that the image would be decoded to; decides the number of channels.
        dtype: type of the result: INT64, UINT64, INT32, UINT32, FLOAT or FLOAT64.
        adjust_orientation: return the extents after the EXIF orientation is applied.

    Returns:
        ``[3]``: height, width, channels.

    Raises:
        DecodeError: the data is not an image.
        ArgumentValueError: `dtype` is not supported.

    Example:
        >>> shapes = fn.peek_image_shape(encoded)  # doctest: +SKIP
        >>> height = shapes[0]  # doctest: +SKIP
    """
    decoder_rule(encoded, DALIDataType.UINT8)
    if dtype not in _DTYPES:
        raise ArgumentValueError(option_error_text("dtype", dtype.text, [f"types.{option.name}" for option in _DTYPES]))
    return Spec(dtype, 1, "", (3,))


@peek_image_shape.prepare
def _(encoded: Batch, *, image_type: DALIImageType, adjust_orientation: bool) -> dict[str, Any]:
    return {"shapes": decoded_shapes(encoded, image_type, adjust_orientation)[0]}


@peek_image_shape.cpu_samples
def _(out: Samples, encoded: Samples, *, shapes: np.ndarray) -> None:
    assert out.dense is not None, "dalify bug: shapes that are not in one array"
    out.dense[...] = shapes


peek_image_shape.substitute(blank_image)
