"""Inflate compressed data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalify.base.errors import (
    ArgumentValueError,
    DalifyError,
    DTypeError,
    IndexingError,
    LayoutError,
    option_error_text,
)
from dalify.codecs.lz4 import inflate_lz4
from dalify.data import DALIDataType
from dalify.registry import VARIES, Shaping, Spec, operator

_ALGORITHMS = ("LZ4",)
_BLANK = np.empty(0, np.uint8)  # takes the place of data that cannot be inflated; known by its identity


@operator(listed=True)
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
    """Inflate arrays that were compressed as LZ4 blocks, without frames.

    A sample is one compressed array, or several of one shape one after the other (chunks, for instance the frames of a
    sequence), which become one array with one more dimension in front.

    Args:
        compressed: uint8 ``[bytes]``.
        shape: of the inflated array; with chunks, of each chunk.
        algorithm: ``"LZ4"``.
        check_output_size: accepted: whether the data fit the shape is always checked.
        chunk_offsets: where each chunk begins in the sample, bytes. Without ``chunk_sizes`` a chunk ends where the next
            one begins, the last one at the end of the sample.
        chunk_sizes: compressed bytes of each chunk. Without ``chunk_offsets`` the chunks stand one behind the other.
        dtype: element type of the inflated data, in the byte order of the machine.
        layout: of a sample, or of a chunk.
        sequence_axis_name: letter of the dimension that counts chunks; for data with chunks and a layout only.

    Returns:
        ``[*shape]``, or ``[chunks, *shape]`` where ``chunk_offsets`` or ``chunk_sizes`` is given; with
        ``on_error="replace"``, zeros in the place of data that cannot be inflated.

    Raises:
        DecodeError: damaged or truncated data, or data of another size than ``shape`` and ``dtype`` say.
        IndexingError: a chunk outside the sample.
        ArgumentValueError: an unknown algorithm, a negative extent, or as many offsets as sizes are not given.
        LayoutError: a layout that does not fit the shape.

    Example:
        >>> sequences = fn.decoders.inflate(data, shape=shapes, chunk_sizes=sizes, layout="HWC")  # doctest: +SKIP
    """
    if algorithm not in _ALGORITHMS:
        raise ArgumentValueError(option_error_text("algorithm", algorithm, _ALGORITHMS))
    if compressed.dtype not in (None, DALIDataType.UINT8) or compressed.ndim not in (None, 1):
        raise DTypeError(f"compressed data are one-dimensional samples of type UINT8; got {compressed!r}.")
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
        raise LayoutError(f"the layout {layout!r} cannot describe {ndim} dimensions; shape is {list(shape)}.")
    if chunk_offsets is VARIES or chunk_sizes is VARIES:
        return Spec(dtype, ndim, layout, None, compressed.device)
    full_shape = tuple(shape)
    if has_chunks:
        known = chunk_offsets if chunk_offsets is not None else chunk_sizes or ()
        if chunk_offsets is not None and chunk_sizes is not None and len(chunk_offsets) != len(chunk_sizes):
            raise ArgumentValueError(
                f"there are {len(chunk_offsets)} chunk_offsets and {len(chunk_sizes)} chunk_sizes; both count chunks."
            )
        full_shape = (len(known), *full_shape)
    return Spec(dtype, ndim, layout, full_shape, compressed.device)


def _windows(size: int, offsets: Sequence[int] | None, sizes: Sequence[int] | None) -> list[tuple[int, int]]:
    """Return where each chunk begins and ends in a sample of ``size`` bytes."""
    if offsets is None and sizes is None:
        return [(0, size)]
    if sizes is None:
        assert offsets is not None, "dalify bug: chunks without a beginning"
        windows = list(zip(offsets, [*offsets[1:], size], strict=True))
    elif offsets is None:
        ends = np.cumsum(sizes).tolist()
        windows = list(zip([0, *ends[:-1]], ends, strict=True))
    else:
        windows = [(offset, offset + length) for offset, length in zip(offsets, sizes, strict=True)]
    for number, (start, stop) in enumerate(windows):
        if not 0 <= start <= stop <= size:
            raise IndexingError(f"chunk {number} is the bytes {start} to {stop} of a sample of {size} bytes.")
    return windows


@inflate.cpu
def _(out, compressed, *, chunk_offsets, chunk_sizes):
    chunked = chunk_offsets is not None or chunk_sizes is not None
    for index, data in enumerate(compressed):
        if data is _BLANK:
            out[index][...] = 0
            continue
        offsets = None if chunk_offsets is None else np.asarray(chunk_offsets[index], np.int64).tolist()
        sizes = None if chunk_sizes is None else np.asarray(chunk_sizes[index], np.int64).tolist()
        try:
            for number, (start, stop) in enumerate(_windows(data.size, offsets, sizes)):
                target = out[index][number] if chunked else out[index]
                if target.size:
                    inflate_lz4(target.reshape(-1).view(np.uint8), data[start:stop])
        except DalifyError as error:
            error.sample = index
            raise


@inflate.stand_in
def _(compressed):
    return _BLANK
