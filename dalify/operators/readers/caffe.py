"""Read images and labels from Caffe's LMDB databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import NoOutputsError
from dalify.data import DALIDataType
from dalify.formats.files.identity import file_identity
from dalify.formats.files.pieces import samples_in
from dalify.formats.records.lmdb_records import LmdbRecord, LmdbRecords
from dalify.formats.records.protobuf import BYTES, VARINT, fields, next_field, varint
from dalify.registry import Spec, reader

# Fields of caffe.proto's Datum.
_DATA, _LABEL = 4, 5


def _count(given: Mapping[str, Any]) -> int:
    count = given["image_available"] + given["label_available"]
    if not count:
        raise NoOutputsError("image_available and label_available must not both be False.")
    return count


@reader(outputs=_count)
def caffe(*, path: list[str], image_available: bool = True, label_available: bool = True) -> tuple[Spec, ...]:
    """Read the ``Datum`` messages of Caffe's LMDB databases, in the order of their keys.

    With ``on_error="replace"``, a record that cannot be read becomes an empty image with zeros as labels.

    Args:
        path: the databases, in order: folders or files.
        image_available: return the images.
        label_available: return the labels.

    Returns:
        image: the bytes of the field ``data``, uint8 ``[n]``, on the CPU: an encoded image, or planar pixels for
            fn.reshape.
        label: int32 ``[1]``; empty if a record has none.

    Raises:
        ReaderError: a missing or damaged database, or a record that is not a Datum.
        NoOutputsError: neither images nor labels.

    Example:
        >>> encoded, labels = fn.readers.caffe(path="train_lmdb")  # doctest: +SKIP
    """
    image, label = Spec(DALIDataType.UINT8, 1, ""), Spec(DALIDataType.INT32, 1, "")
    return (image,) * image_available + (label,) * label_available


@caffe.index
def _(path: Sequence[str], image_available: bool, label_available: bool) -> LmdbRecords:
    return LmdbRecords(path)


@caffe.read
def _(record: LmdbRecord, *, image_available: bool, label_available: bool) -> tuple[np.ndarray[Any, Any], ...]:
    data = record.read()
    image, label = np.empty(0, np.uint8), np.empty(0, np.int32)
    for field in fields(data):
        if field.number == _DATA and field.wire == BYTES:
            image = data[field.start : field.stop]
        elif field.number == _LABEL and field.wire == VARINT:
            label = np.array([field.value], np.int64).astype(np.int32)
    return (image,) * image_available + (label,) * label_available


@caffe.read_many
def _(
    records: LmdbRecords, numbers: np.ndarray[Any, Any], *, image_available: bool, label_available: bool
) -> tuple[Any, ...] | None:
    pieces = records.read_many(numbers)
    if pieces is None:
        return None
    found = np.zeros((len(numbers), 2), np.int64)
    labels = np.empty((len(numbers), 1), np.int32)
    if not _find_all(pieces.data, pieces.starts, pieces.stops, found, labels):
        return None
    images = (samples_in(pieces.data, found[:, 0], found[:, 1]),) if image_available else ()
    return images + (labels,) * label_available


@njit(nogil=True, cache=True)
def _find_all(data: Any, starts: Any, stops: Any, found: Any, labels: Any) -> bool:
    """Store the positions of images, and labels; return False if a record is damaged or has no label."""
    for record in range(starts.size):
        place = starts[record]
        has_label = False
        while place < stops[record]:
            number, wire, begin, place = next_field(data, place, stops[record])
            if place < 0:
                return False
            if number == _DATA and wire == BYTES:
                found[record, 0], found[record, 1] = begin, place
            elif number == _LABEL and wire == VARINT:
                value, _ = varint(data, begin, place)
                labels[record, 0] = np.int32(np.int64(value))
                has_label = True
        if not has_label:
            return False
    return True


@caffe.identity()
def _(record: LmdbRecord) -> tuple[str, str]:
    return file_identity(*record.place)


@caffe.source_info
def _(record: LmdbRecord, output: int) -> str:
    return "" if output else record.origin.name  # labels have none


@caffe.substitute
def _(record: LmdbRecord, *, image_available: bool, label_available: bool) -> tuple[np.ndarray[Any, Any], ...]:
    return (np.empty(0, np.uint8),) * image_available + (np.zeros(1, np.int32),) * label_available
