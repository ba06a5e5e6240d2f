"""Read columns of Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.formats.arrow_rows import ArrowRow, ArrowRows
from dalify.formats.arrow_tables import ParquetSource, opened, pyarrow_parquet
from dalify.formats.identity import file_identity
from dalify.registry import Spec, operator


def _count(arguments: Mapping[str, Any]) -> int:
    if not arguments["columns"]:
        raise ArgumentValueError("columns is empty: there is nothing to read.", hint="For example columns=['image'].")
    return len(arguments["columns"])


@operator(outputs=_count, reader=True, needs=(pyarrow_parquet,))
def parquet(
    *,
    paths: list[str],
    columns: list[str],
    cache_bytes: int = 1 << 30,
    allow_outside_root: bool = False,
) -> tuple[Spec, ...]:
    """Read rows of Parquet files; DALI has no such reader.

    Rows are kept in row groups, which are decoded as a whole; those used last are kept. So with ``random_shuffle`` or
    ``shuffle_after_epoch``, whole row groups are shuffled, and then all rows within windows of at least `initial_fill`
    rows, or of `cache_bytes` / 2. Every row comes once in an epoch, as ever. A sampler chooses row by row, which is
    quick only where all the data fit into `cache_bytes`.

    Args:
        paths: the files, on this machine or URLs, of which only the wanted parts are read.
        columns: names of the columns.
        cache_bytes: most memory for decoded row groups, in each process. Two are kept in any case.
        allow_outside_root: a field ``path`` may lead out of the folder of its file, and be a URL. Only for files that
            can be trusted.

    Returns:
        one output per column, on the CPU. Numbers and booleans: an array without dimensions; binary and text: uint8
        ``[n]``; a list of numbers: ``[n]``; lists of lists, lists of fixed size, and tensors: an array of so many
        dimensions; a struct with a field ``bytes``, as Hugging Face has for pictures and sounds: its bytes, or where
        they are null the contents of the file that its field ``path`` names; categories: their values.

    Raises:
        ReaderError: a file that is missing or damaged; a null (see ``on_error``); nested lists of different lengths
            in one row.
        ArgumentValueError: a column that is not there.
        DTypeError: a column of which no arrays can be made, or of different types in two files.

    Example:
        >>> encoded, label = fn.readers.parquet(
        ...     paths=["train-00000.parquet", "train-00001.parquet"],
        ...     columns=["image", "label"],
        ...     random_shuffle=True,
        ...     name="Reader",
        ... )  # doctest: +SKIP
        >>> images = fn.decoders.image(encoded)  # doctest: +SKIP
    """
    return (Spec(None, None, ""),) * len(columns)


@parquet.index
def _(paths: Sequence[str], columns: Sequence[str], cache_bytes: int, allow_outside_root: bool) -> ArrowRows:
    if not paths:
        raise ReaderError("there are no paths.")
    sources = opened(paths, columns, ParquetSource)
    return ArrowRows(sources, columns, cache_bytes, allow_outside_root=allow_outside_root)


@parquet.read
def _(row: ArrowRow) -> tuple[np.ndarray[Any, Any], ...]:
    return row.read()


@parquet.read_many
def _(rows: ArrowRows, numbers: np.ndarray[Any, Any]) -> tuple[Any, ...] | None:
    return rows.read_many(numbers)


@parquet.stand_in
def _(row: ArrowRow) -> tuple[np.ndarray[Any, Any] | None, ...]:
    return row.stand_in()


@parquet.identity("columns")
def _(row: ArrowRow) -> tuple[str, str]:
    return file_identity(row.rows.source_name(row.block), row.number)


@parquet.origin
def _(row: ArrowRow) -> str:
    return row.origin
