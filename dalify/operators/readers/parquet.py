"""Read columns of Parquet files."""

from __future__ import annotations

from collections.abc import Sequence

from dalify.formats.files.identity import file_identity
from dalify.formats.tables.arrow_rows import ArrowRow, ArrowRows
from dalify.formats.tables.arrow_tables import ParquetSource, open_sources, pyarrow_parquet
from dalify.registry import Spec, one_per_entry, reader

_count = one_per_entry("columns", "['image']")


@reader(outputs=_count, needs=(pyarrow_parquet,))
def parquet(
    *,
    paths: list[str],
    columns: list[str],
    cache_bytes: int = 1 << 30,
    allow_outside_root: bool = False,
) -> tuple[Spec, ...]:
    """Read rows of Parquet files. DALI has no such reader.

    Row groups are decoded as a whole and kept in an LRU cache. ``random_shuffle`` and ``shuffle_after_epoch`` therefore
    shuffle row groups, and then all rows within windows of at least `initial_fill` rows or `cache_bytes` / 2. Every
    row occurs once per epoch. A sampler selects individual rows, which is fast only if all data fits into
    `cache_bytes`.

    Args:
        paths: local files, or URLs, of which only the required parts are read.
        columns: names of the columns.
        cache_bytes: maximum memory for decoded row groups, per process. At least two row groups are kept.
        allow_outside_root: allow values of a field ``path`` that leave the folder of the file, and URLs. Only for
            trusted files.

    Returns:
        one output per column, on the CPU. Numbers and booleans: 0-D arrays; binary data and strings: uint8 ``[n]``;
        lists of numbers: ``[n]``; nested lists, fixed-size lists and tensors: n-D arrays; structs with a field
        ``bytes``, as used by Hugging Face for images and audio: the bytes, or if they are null, the contents of the
        file in the field ``path``; dictionaries: their values.

    Raises:
        ReaderError: a missing or damaged file; a null (see ``on_error``); nested lists of different lengths
            in one row.
        ArgumentValueError: a column does not exist.
        DTypeError: a column cannot be converted to arrays, or has different types in two files.

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
    sources = open_sources(paths, columns, ParquetSource)
    return ArrowRows(sources, columns, cache_bytes, allow_outside_root=allow_outside_root)


parquet.read(ArrowRow.read)
parquet.read_many(ArrowRows.read_many)
parquet.substitute(ArrowRow.substitute)


@parquet.identity("columns")
def _(row: ArrowRow) -> tuple[str, str]:
    return file_identity(row.rows.source_name(row.block), row.number)
