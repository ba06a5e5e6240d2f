"""Read images, labels and more from Caffe2's LMDB databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, NoOutputsError, ReaderError
from dalify.base.wording import counted
from dalify.data import DALIDataType
from dalify.formats.files.identity import file_identity
from dalify.formats.files.pieces import samples_in
from dalify.formats.records.caffe2_tensors import Caffe2Tensor, find_texts_and_integers, tensors_of
from dalify.formats.records.lmdb_records import LmdbRecord, LmdbRecords
from dalify.registry import Parameters, Spec, reader

_SINGLE, _SPARSE, _DENSE, _WEIGHTED, _NO_LABEL = range(5)
_MAX_INPUTS = 1000


@dataclass(slots=True)
class _Contents(Parameters):
    """The tensors of a record.

    Attributes:
        additional_inputs: number of further tensors.
        bbox: the record has a box.
        image_available: the record has an image.
        label_type: 0: one integer; 1: indices of the classes of the record; 2: a value per class; 3: indices of the
            classes and their weights; 4: no label. (DALI fails on 1 and 3.)
        num_labels: number of classes, for types 1 and 3.
    """

    additional_inputs: int = 0
    bbox: bool = False
    image_available: bool = True
    label_type: int = 0
    num_labels: int = 1

    @property
    def has_label(self) -> bool:
        """Whether the record has a label."""
        return self.label_type != _NO_LABEL

    @property
    def has_classes(self) -> bool:
        """Whether the label is a list of classes."""
        return self.label_type in (_SPARSE, _WEIGHTED)


def _count(given: Mapping[str, Any]) -> int:
    if not 0 <= given["additional_inputs"] <= _MAX_INPUTS:
        raise ArgumentValueError(
            f"additional_inputs must be between 0 and {_MAX_INPUTS}; got {given['additional_inputs']}."
        )
    has_label = given["label_type"] != _NO_LABEL
    count = given["image_available"] + has_label + given["additional_inputs"] + given["bbox"]
    if not count:
        raise NoOutputsError("at least one of image, label, box and additional inputs must be enabled.")
    return count


@reader(outputs=_count)
def caffe2(*, path: list[str], contents: _Contents) -> tuple[Spec, ...]:
    """Read the ``TensorProtos`` messages of Caffe2's LMDB databases, in the order of their keys.

    A record holds tensors in the order of the outputs; sparse labels with weights are two tensors.

    With ``on_error="replace"``, a record that cannot be read becomes an empty image and zeros.

    Args:
        path: the databases, in order: folders or files.

    Returns:
        image: the encoded image, uint8 ``[bytes]``, or pixels, uint8 HWC; on the CPU.
        label: int32 or float32 as stored, ``[1]`` or ``[n]``; for 1, int32 ``[num_labels]`` of 0 and 1; for 3, float32
            ``[num_labels]`` of weights.
        additional: int32 or float32 ``[n]`` as stored, each.
        box: int32 ``[4]``.

    Raises:
        ReaderError: a missing or damaged database; a record whose tensors do not match the arguments.
        ArgumentValueError: an unknown label type.
        NoOutputsError: neither images, labels, boxes nor additional inputs.
        MixedBatchError: the type or number of dimensions of a sample differs from the first one of the batch.

    Example:
        >>> encoded, labels = fn.readers.caffe2(path="train_lmdb", label_type=0)  # doctest: +SKIP
    """
    if not _SINGLE <= contents.label_type <= _NO_LABEL:
        raise ArgumentValueError(f"label_type must be between 0 and {_NO_LABEL}; got {contents.label_type}.")
    if contents.has_classes and contents.num_labels < 1:
        raise ArgumentValueError(f"num_labels must be at least 1; got {contents.num_labels}.")
    specs = [Spec(DALIDataType.UINT8, None, "")] if contents.image_available else []
    if contents.has_label:
        # Other labels have the type of the stored data.
        known = {_SPARSE: DALIDataType.INT32, _WEIGHTED: DALIDataType.FLOAT}
        specs.append(Spec(known.get(contents.label_type), 1, ""))
    specs += [Spec(None, 1, "")] * contents.additional_inputs
    if contents.bbox:
        specs.append(Spec(DALIDataType.INT32, 1, ""))
    return tuple(specs)


@caffe2.index
def _(path: Sequence[str], contents: _Contents) -> LmdbRecords:
    return LmdbRecords(path)


@caffe2.read
def _(record: LmdbRecord, *, contents: _Contents) -> tuple[np.ndarray[Any, Any], ...]:
    tensors = tensors_of(record.read())
    of_label = contents.has_label + (contents.label_type == _WEIGHTED)
    needed = contents.image_available + of_label + contents.additional_inputs + contents.bbox
    if len(tensors) < needed:
        raise ReaderError(f"the record has {len(tensors)} tensors; expected at least {needed}.")
    left = iter(tensors)
    results: list[np.ndarray[Any, Any]] = [next(left).image()] if contents.image_available else []
    if contents.has_label:
        label = next(left)
        weights = next(left) if contents.label_type == _WEIGHTED else None
        results.append(_label(label, weights, contents.label_type, contents.num_labels))
    results += [next(left).numbers("additional input") for _ in range(contents.additional_inputs)]
    if contents.bbox:
        results.append(_box(next(left)))
    return tuple(results)


def _label(
    tensor: Caffe2Tensor, weights: Caffe2Tensor | None, label_type: int, num_labels: int
) -> np.ndarray[Any, Any]:
    values = tensor.numbers("label")
    if label_type == _DENSE:
        return values
    if label_type == _SINGLE:
        if values.size != 1:
            raise ReaderError(f"the record has {counted(values.size, 'label')}; label_type=0 requires a single one.")
        return values
    if values.dtype != np.int32:
        raise ReaderError("class indices must be integers.")
    if ((values < 0) | (values >= num_labels)).any():
        raise ReaderError(f"the record has the labels {values.tolist()}; they must be between 0 and {num_labels - 1}.")
    found = np.zeros(num_labels, np.int32 if weights is None else np.float32)
    given = np.ones(values.size) if weights is None else weights.numbers("weights of labels")
    if given.size != values.size:
        raise ReaderError(f"the record has {counted(given.size, 'weight')} for {counted(values.size, 'label')}.")
    found[values.astype(np.int64)] = given
    return found


def _box(tensor: Caffe2Tensor) -> np.ndarray[Any, Any]:
    values = tensor.numbers("box")
    if values.dtype != np.int32 or values.size != 4:
        raise ReaderError("the box of the record must be four integers.")
    return values


@caffe2.read_many
def _(records: LmdbRecords, numbers: np.ndarray[Any, Any], *, contents: _Contents) -> tuple[Any, ...] | None:
    has_integer = contents.label_type == _SINGLE
    is_plain = contents.image_available and (has_integer or not contents.has_label)
    if not is_plain or contents.additional_inputs or contents.bbox:
        return None
    pieces = records.read_many(numbers)
    if pieces is None:
        return None
    spans = np.empty((len(numbers), 2), np.int64)
    labels = np.empty((len(numbers), int(has_integer)), np.int32)
    if not find_texts_and_integers(pieces.data, pieces.starts, pieces.stops, spans, labels):
        return None
    images = samples_in(pieces.data, spans[:, 0], spans[:, 1])
    return (images, labels) if has_integer else (images,)


@caffe2.identity()
def _(record: LmdbRecord) -> tuple[str, str]:
    return file_identity(*record.place)


@caffe2.source_info
def _(record: LmdbRecord, output: int) -> str:
    return "" if output else record.origin.name  # labels have none


@caffe2.substitute
def _(record: LmdbRecord, *, contents: _Contents) -> tuple[np.ndarray[Any, Any], ...]:
    results: list[np.ndarray[Any, Any]] = [np.empty(0, np.uint8)] if contents.image_available else []
    if contents.has_label:
        # The stored type of other labels is unknown; a single integer is the most common.
        count = contents.num_labels if contents.has_classes else 1
        results.append(np.zeros(count, np.float32 if contents.label_type == _WEIGHTED else np.int32))
    results += [np.zeros(1, np.int32)] * contents.additional_inputs
    return (*results, np.zeros(4, np.int32)) if contents.bbox else tuple(results)
