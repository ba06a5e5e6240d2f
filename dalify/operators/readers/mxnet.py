"""Read images and labels from MXNet's RecordIO files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.data import DALIDataType
from dalify.formats.files.identity import file_identity
from dalify.formats.records.recordio import image_and_labels, images_and_labels, records_of
from dalify.formats.records.records import Record, Records
from dalify.registry import Spec, reader


@reader(outputs=2)
def mxnet(*, path: list[str], index_path: list[str]) -> tuple[Spec, Spec]:
    """Read encoded images and their labels from RecordIO files, as MXNet's ``im2rec`` writes them.

    Records are in the order of the files, regardless of the order of the index.

    ``shuffle_after_epoch`` shuffles the files but not the records within a file; ``random_shuffle`` additionally
    shuffles the records of the shard. With ``on_error="replace"``, a record that cannot be read becomes an empty image
    with zeros as labels.

    Args:
        path: the ``.rec`` files.
        index_path: the ``.idx`` file, with offsets across all files; or one per file, which DALI rejects. A warning is
            issued if an index ends before its file.

    Returns:
        image: the encoded image, uint8 ``[bytes]``, on the CPU.
        label: float32 ``[n]``: all labels of the record.

    Raises:
        ReaderError: a missing or damaged file or index.
        ArgumentValueError: a wrong number of indices.

    Example:
        >>> encoded, labels = fn.readers.mxnet(path=["train.rec"], index_path=["train.idx"])  # doctest: +SKIP
    """
    return Spec(DALIDataType.UINT8, 1, ""), Spec(DALIDataType.FLOAT, 1, "")


@mxnet.index
def _(path: Sequence[str], index_path: Sequence[str]) -> Records:
    return records_of(path, index_path)


mxnet.read(image_and_labels)
mxnet.read_many(images_and_labels)


@mxnet.identity()
def _(record: Record) -> tuple[str, str]:
    return file_identity(record.files.paths[record.file], record.offset, record.size)


@mxnet.source_info
def _(record: Record, output: int) -> str:
    return "" if output else record.origin.name  # labels have none


@mxnet.substitute
def _(record: Record) -> tuple[np.ndarray[Any, Any], ...]:
    return np.empty(0, np.uint8), np.zeros(1, np.float32)
