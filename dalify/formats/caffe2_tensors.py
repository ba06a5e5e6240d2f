"""Caffe2's ``TensorProtos``: the tensors of one sample.

Alone because what each tensor of a record means is the reader's matter; here they are only decoded. Source:
caffe2.proto of PyTorch.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ReaderError
from dalify.formats.protobuf import BYTES, fields, floats, integers

__all__ = ["Caffe2Tensor", "tensors_of"]

FLOAT, INT32, BYTE, STRING = 1, 2, 3, 4
# Fields of TensorProto.
_DIMS, _TYPE, _FLOATS, _INTEGERS, _BYTES, _TEXTS = 1, 2, 3, 4, 5, 6


class Caffe2Tensor(NamedTuple):
    """One tensor of a record.

    Attributes:
        kind: its type, by the numbers of caffe2.proto.
        dims: its extents.
        data: the record.
        start: first byte of the tensor.
        stop: its end.
    """

    kind: int
    dims: list[int]
    data: NDArray[np.uint8]
    start: int
    stop: int

    def numbers(self, what: str) -> NDArray[np.int32] | NDArray[np.float32]:
        """Return its numbers, ``[n]``.

        Args:
            what: the tensor is, for messages.

        Raises:
            ReaderError: neither integers nor floats of 32 bits.
        """
        if self.kind == INT32:
            return integers(self.data, self.start, self.stop, _INTEGERS).astype(np.int32)
        if self.kind == FLOAT:
            return floats(self.data, self.start, self.stop, _FLOATS)
        raise ReaderError(f"the {what} of the record has the type {self.kind}; it must be FLOAT (1) or INT32 (2).")

    def image(self) -> NDArray[np.uint8]:
        """Return an encoded image, uint8 ``[bytes]``, or pixels, uint8 HWC.

        Raises:
            ReaderError: neither a text nor bytes, or another number of bytes than the extents say.
        """
        wanted = {STRING: _TEXTS, BYTE: _BYTES}.get(self.kind)
        if wanted is None:
            raise ReaderError(f"the image of the record has the type {self.kind}; it must be BYTE (3) or STRING (4).")
        found = [
            self.data[field.start : field.stop]
            for field in fields(self.data, self.start, self.stop)
            if field.number == wanted and field.wire == BYTES
        ]
        if len(found) != 1:
            raise ReaderError(f"the record has {len(found)} images; it must have one.")
        if self.kind == STRING:
            return found[0]
        shape = [*self.dims, 1] if len(self.dims) == 2 else self.dims
        if len(shape) != 3 or min(shape) < 0 or math.prod(shape) != found[0].size:
            raise ReaderError(f"an image of extents {self.dims} does not fill {found[0].size} bytes.")
        return found[0].reshape(shape)


def tensors_of(data: NDArray[np.uint8]) -> list[Caffe2Tensor]:
    """Return the tensors of a record.

    Args:
        data: the record, uint8.

    Raises:
        ReaderError: it is damaged.
    """
    found: list[Caffe2Tensor] = []
    for outer in fields(data):
        if outer.number != 1 or outer.wire != BYTES:
            continue
        kind = FLOAT  # what the format takes where nothing is said
        for field in fields(data, outer.start, outer.stop):
            if field.number == _TYPE:
                kind = field.value
        dims = integers(data, outer.start, outer.stop, _DIMS).tolist()
        found.append(Caffe2Tensor(kind, dims, data, outer.start, outer.stop))
    return found
