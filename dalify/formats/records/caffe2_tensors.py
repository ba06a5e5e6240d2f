"""Decodes Caffe2's ``TensorProtos``: the tensors of one sample. Source: caffe2.proto of PyTorch."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.compiling import njit
from dalify.base.errors import ReaderError
from dalify.base.wording import counted
from dalify.formats.records.protobuf import BYTES, VARINT, fields, floats, integers, next_field, varint

FLOAT, INT32, BYTE, STRING = 1, 2, 3, 4
# Fields of TensorProto.
_DIMS, _TYPE, _FLOATS, _INTEGERS, _BYTES, _STRINGS = 1, 2, 3, 4, 5, 6


class Caffe2Tensor(NamedTuple):
    """One tensor of a record.

    Attributes:
        kind: data type, as numbered in caffe2.proto.
        dims: extents.
        data: the record.
        start: offset of the tensor in the record.
        stop: end of the tensor in the record.
    """

    kind: int
    dims: list[int]
    data: NDArray[np.uint8]
    start: int
    stop: int

    def numbers(self, what: str) -> NDArray[np.int32] | NDArray[np.float32]:
        """Return the numbers of the tensor, ``[n]``.

        Args:
            what: name of the tensor, for error messages.

        Raises:
            ReaderError: the tensor is neither int32 nor float32.
        """
        if self.kind == INT32:
            return integers(self.data, self.start, self.stop, _INTEGERS).astype(np.int32)
        if self.kind == FLOAT:
            return floats(self.data, self.start, self.stop, _FLOATS)
        raise ReaderError(f"the {what} of the record has type {self.kind}; it must be FLOAT (1) or INT32 (2).")

    def image(self) -> NDArray[np.uint8]:
        """Return an encoded image, uint8 ``[bytes]``, or pixels, uint8 HWC.

        Raises:
            ReaderError: the tensor is neither a string nor bytes, or its size does not match its extents.
        """
        wanted = {STRING: _STRINGS, BYTE: _BYTES}.get(self.kind)
        if wanted is None:
            raise ReaderError(f"the image of the record has type {self.kind}; it must be BYTE (3) or STRING (4).")
        found = [
            self.data[field.start : field.stop]
            for field in fields(self.data, self.start, self.stop)
            if field.number == wanted and field.wire == BYTES
        ]
        if len(found) != 1:
            raise ReaderError(f"the record has {counted(len(found), 'image')}; it must have exactly one.")
        if self.kind == STRING:
            return found[0]
        shape = [*self.dims, 1] if len(self.dims) == 2 else self.dims
        if len(shape) != 3 or min(shape) < 0 or math.prod(shape) != found[0].size:
            raise ReaderError(f"an image with extents {self.dims} does not match its {found[0].size} bytes.")
        return found[0].reshape(shape)


@njit(nogil=True, cache=True)
def find_texts_and_integers(data: Any, starts: Any, stops: Any, texts: Any, integers: Any) -> bool:
    """Find the string at the start of each record and, if requested, the integer after it.

    Args:
        data: uint8, contiguous.
        starts: starts of the records, ``[N]``.
        stops: ends of the records.
        texts: output: start and end of each string, int64 ``[N, 2]``.
        integers: output, int32 ``[N, k]``, k is 0 or 1.

    Returns:
        False if a record is damaged or does not have this form.
    """
    for record in range(starts.size):
        place = starts[record]
        tensor = 0
        while place < stops[record]:
            number, wire, inner, place = next_field(data, place, stops[record])
            if place < 0:
                return False
            if number != 1 or wire != BYTES:
                continue
            kind, count = FLOAT, 0
            while inner < place:
                number, wire, begin, inner = next_field(data, inner, place)
                if inner < 0:
                    return False
                if number == _TYPE and wire == VARINT:
                    value, _ = varint(data, begin, inner)
                    kind = np.int64(value)
                elif tensor == 0 and number == _STRINGS and wire == BYTES:
                    texts[record, 0], texts[record, 1] = begin, inner
                    count += 1
                elif tensor == 1 and number == _INTEGERS and wire in (BYTES, VARINT):
                    value, after = varint(data, begin, inner)
                    if after != inner:
                        return False
                    if integers.shape[1]:
                        integers[record, 0] = np.int32(np.int64(value))
                    count += 1
            if tensor <= integers.shape[1] and (count != 1 or kind != (STRING if tensor == 0 else INT32)):
                return False
            tensor += 1
        if tensor <= integers.shape[1]:
            return False
    return True


def tensors_of(data: NDArray[np.uint8]) -> list[Caffe2Tensor]:
    """Return the tensors of a record.

    Args:
        data: the record, uint8.

    Raises:
        ReaderError: the record is damaged.
    """
    found: list[Caffe2Tensor] = []
    for outer in fields(data):
        if outer.number != 1 or outer.wire != BYTES:
            continue
        kind = FLOAT  # the default of the format
        for field in fields(data, outer.start, outer.stop):
            if field.number == _TYPE:
                kind = field.value
        dims = integers(data, outer.start, outer.stop, _DIMS).tolist()
        found.append(Caffe2Tensor(kind, dims, data, outer.start, outer.stop))
    return found
