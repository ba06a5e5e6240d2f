"""Read features of ``tf.Example`` records from TFRecord files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.data import DALIDataType
from dalify.formats.files.identity import file_identity
from dalify.formats.records.records import Record, Records
from dalify.formats.records.tf_example import ExampleParser, Features, features_of
from dalify.formats.records.tfrecord import payload, payloads, records_of
from dalify.registry import Spec, reader


@reader(
    outputs=lambda arguments: len(arguments["features"]),
    constructor=("path", "index_path", "features"),
)
def tfrecord(
    *,
    path: list[str],
    features: Features,
    index_path: list[str] | None = None,
    check_crc: bool = False,
) -> tuple[Spec, ...]:
    """Read features of the ``tf.Example`` messages in TFRecord files.

    TensorFlow is not needed. Records are located by an index file, or without one, by scanning the files when the
    pipeline is built. A missing feature is an empty array.

    ``shuffle_after_epoch`` shuffles the files but not the records within a file; ``random_shuffle`` additionally
    shuffles the records of the shard. With ``on_error="replace"``, a record that cannot be read becomes empty strings
    and zeros.

    Args:
        path: the files.
        features: dictionary from feature names to ``tfrecord.FixedLenFeature(shape, dtype, default_value)`` or
            ``tfrecord.VarLenFeature([shape,] dtype, default_value)``, with the types ``tfrecord.string`` (one string
            of any length), ``tfrecord.int64`` and ``tfrecord.float32``.
        index_path: index files, one per file, created by ``python -m dalify.tools.tfrecord2idx`` or DALI's tool of
            this name. A warning is issued if an index ends before its file.
        check_crc: verify the checksums of every record.

    Returns:
        a dictionary from names to outputs: uint8 ``[bytes]`` for strings; int64 or float32 of the declared shape; for
        VarLenFeature, ``[n, *shape]``. On the CPU.

    Raises:
        ReaderError: a missing or damaged file; a feature whose type or size differs from the declaration (DALI then
            returns uninitialized memory).
        ArgumentValueError: lists of strings, which cannot be arrays; different numbers of files and indices.

    Example:
        >>> from dalify import tfrecord
        >>> found = fn.readers.tfrecord(
        ...     path="train.tfrecord",
        ...     features={
        ...         "image/encoded": tfrecord.FixedLenFeature([], tfrecord.string, ""),
        ...         "image/class/label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        ...     },
        ... )  # doctest: +SKIP
        >>> images = fn.decoders.image(found["image/encoded"])  # doctest: +SKIP
    """
    specs = []
    for name, feature in features_of(features).items():
        if feature.dtype == DALIDataType.UINT8 and (feature.has_any_length or np.prod(feature.shape) > 1):
            raise ArgumentValueError(
                f"the feature {name!r} is declared as a list of strings, which cannot be one array.",
                hint="Use tfrecord.FixedLenFeature([], tfrecord.string, '') for a single string.",
            )
        specs.append(Spec(feature.dtype, feature.ndim, ""))
    return tuple(specs)


@tfrecord.arrange
def _(nodes: list[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    return dict(zip(arguments["features"], nodes, strict=True))


@tfrecord.index
def _(path: Sequence[str], features: Sequence[Any], index_path: Sequence[str] | None, check_crc: bool) -> Records:
    return records_of(path, index_path, ExampleParser(features_of(features)))


@tfrecord.read
def _(record: Record, *, check_crc: bool) -> tuple[np.ndarray[Any, Any], ...]:
    return record.context(payload(record, check_crc))


@tfrecord.read_many
def _(records: Records, numbers: np.ndarray[Any, Any], *, check_crc: bool) -> tuple[Any, ...] | None:
    pieces = records.read_many(numbers, has_bytes=True)
    places = None if pieces is None else payloads(pieces, check_crc)
    return None if pieces is None or places is None else records.context.columns(pieces.data, *places)


@tfrecord.identity("features")
def _(record: Record) -> tuple[str, str]:
    return file_identity(record.files.paths[record.file], record.offset, record.size)


@tfrecord.substitute
def _(record: Record) -> tuple[np.ndarray[Any, Any], ...]:
    return record.context.empty()
