"""Decompress arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DalifyError, DTypeError, IndexingError, LayoutError, check_option
from dalify.base.wording import counted
from dalify.codecs.lz4 import inflate_lz4
from dalify.data import Batch, DALIDataType, Samples
from dalify.registry import VARIES, Shaping, Spec, Vectors, operator

_ALGORITHMS = ("LZ4",)
_BLANK = np.empty(0, np.uint8)  # placeholder for data that cannot be decompressed; recognized by identity


@operator
def inflate(
    compressed: Spec,
    /,
    *,
    shape: Shaping[list[int]],
    algorithm: str = "LZ4",
    check_output_size: bool = False,
    chunk_offsets: Shaping[list[int]] | None = None,
    chunk_sizes: Shaping[list[int]] | None = None,
    dtype: DALIDataType = DALIDataType.UINT8,
    layout: str = "",
    sequence_axis_name: str = "F",
) -> Spec:
    """Decompress arrays that were compressed as LZ4 blocks, without the LZ4 frame format.

    A sample is one compressed array, or a concatenation of several of the same shape (chunks, for instance the frames
    of a sequence), which become one array with an additional first dimension.

    Args:
        compressed: uint8 ``[bytes]``.
        shape: shape of the decompressed array, or of each chunk.
        algorithm: ``"LZ4"``.
        check_output_size: accepted but ignored; the size of the data is always checked.
        chunk_offsets: start of each chunk in the sample, in bytes. Without ``chunk_sizes`` a chunk ends where the next
            one starts, and the last one at the end of the sample.
        chunk_sizes: compressed size of each chunk in bytes. Without ``chunk_offsets`` the chunks are contiguous.
        dtype: element type of the decompressed data, in native byte order.
        layout: layout of a sample, or of a chunk.
        sequence_axis_name: letter of the chunk dimension; used only with chunks and a layout.

    Returns:
        ``[*shape]``, or ``[chunks, *shape]`` if ``chunk_offsets`` or ``chunk_sizes`` is specified. With
        ``on_error="replace"``, data that cannot be decompressed becomes zeros.

    Raises:
        DecodeError: damaged or truncated data, or data whose size does not match ``shape`` and ``dtype``.
        IndexingError: a chunk outside the sample.
        ArgumentValueError: an unknown algorithm, a negative extent, or different numbers of offsets and sizes.
        LayoutError: the layout does not match the shape.

    Example:
        >>> sequences = fn.decoders.inflate(data, shape=shapes, chunk_sizes=sizes, layout="HWC")  # doctest: +SKIP
    """
    check_option("algorithm", algorithm, _ALGORITHMS)
    if compressed.dtype not in (None, DALIDataType.UINT8) or compressed.ndim not in (None, 1):
        raise DTypeError(f"compressed data must be one-dimensional samples of type uint8; got {compressed!r}.")
    has_chunks = chunk_offsets is not None or chunk_sizes is not None
    if has_chunks and layout and len(sequence_axis_name) != 1:
        raise LayoutError(f"sequence_axis_name must be one letter; got {sequence_axis_name!r}.")
    if has_chunks and layout:
        layout = sequence_axis_name + layout
    if shape is VARIES:
        return Spec(dtype, len(layout) or None, layout, None, compressed.device)
    for extent in shape:
        if extent < 0:
            raise ArgumentValueError(f"shape must not have negative extents; got {list(shape)}.")
    ndim = len(shape) + has_chunks
    if layout and len(layout) != ndim:
        raise LayoutError(f"the layout {layout!r} does not match {counted(ndim, 'dimension')}; shape is {list(shape)}.")
    if chunk_offsets is VARIES or chunk_sizes is VARIES:
        return Spec(dtype, ndim, layout, None, compressed.device)
    full_shape = tuple(shape)
    if has_chunks:
        known = chunk_offsets if chunk_offsets is not None else chunk_sizes or ()
        if chunk_offsets is not None and chunk_sizes is not None and len(chunk_offsets) != len(chunk_sizes):
            raise ArgumentValueError(
                f"chunk_offsets and chunk_sizes must have the same length; "
                f"got {len(chunk_offsets)} and {len(chunk_sizes)}."
            )
        full_shape = (len(known), *full_shape)
    return Spec(dtype, ndim, layout, full_shape, compressed.device)


def _windows(size: int, offsets: Sequence[int] | None, sizes: Sequence[int] | None) -> list[tuple[int, int]]:
    """Return start and end of each chunk in a sample of ``size`` bytes."""
    if offsets is None and sizes is None:
        return [(0, size)]
    if sizes is None:
        assert offsets is not None, "dalify bug: chunks without offsets"
        windows = list(zip(offsets, [*offsets[1:], size], strict=True))
    elif offsets is None:
        ends = np.cumsum(sizes).tolist()
        windows = list(zip([0, *ends[:-1]], ends, strict=True))
    else:
        windows = [(offset, offset + length) for offset, length in zip(offsets, sizes, strict=True)]
    for number, (start, stop) in enumerate(windows):
        if not 0 <= start <= stop <= size:
            raise IndexingError(
                f"chunk {number} spans the bytes {start} to {stop}, outside the sample of {size} bytes."
            )
    return windows


@inflate.prepare
def _(compressed: Batch) -> dict[str, Any]:
    return {"is_blank": [sample is _BLANK for sample in compressed.samples]}


@inflate.cpu_samples
def _(
    out: Samples,
    compressed: Samples,
    *,
    chunk_offsets: Vectors | None,
    chunk_sizes: Vectors | None,
    is_blank: Sequence[bool],
) -> None:
    chunked = chunk_offsets is not None or chunk_sizes is not None
    for index, (result, data) in enumerate(zip(out.arrays(), compressed.arrays(), strict=True)):
        if is_blank[index]:
            result[...] = 0
            continue
        offsets = None if chunk_offsets is None else np.asarray(chunk_offsets[index], np.int64).tolist()
        sizes = None if chunk_sizes is None else np.asarray(chunk_sizes[index], np.int64).tolist()
        try:
            for number, (start, stop) in enumerate(_windows(data.size, offsets, sizes)):
                target = result[number] if chunked else result
                if target.size:
                    inflate_lz4(target.reshape(-1).view(np.uint8), data[start:stop])
        except DalifyError as error:
            error.sample = index
            raise


@inflate.substitute
def _(compressed: np.ndarray) -> np.ndarray:
    return _BLANK
