"""Read columns of Arrow files and tables, and of Hugging Face datasets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.base.optional import LazyModule
from dalify.formats.tables.arrow_rows import ArrowRow, ArrowRows
from dalify.formats.tables.arrow_tables import TableSource, open_sources, source_of_file
from dalify.registry import Spec, one_per_entry, reader

pyarrow = LazyModule("pyarrow", "reading Arrow data", "dalify[arrow]")

_count = one_per_entry("columns", "['image']")


@reader(outputs=_count, needs=(pyarrow,))
def arrow(
    *,
    source: object,
    columns: list[str],
    cache_bytes: int = 1 << 30,
    memory_map: bool = False,
    allow_outside_root: bool = False,
) -> tuple[Spec, ...]:
    """Read rows of Arrow data: files, a table in memory, or a Hugging Face dataset. DALI has no such reader.

    Rows of uncompressed files are read individually. Record batches of compressed files are decoded as a whole and
    shuffled like row groups; see ``fn.readers.parquet``. Those of compressed streams stay in memory.

    Columns of a Hugging Face dataset are read as stored: images and audio are returned as encoded bytes, for decoders
    of the pipeline. The effect of ``select``, ``shuffle``, ``filter`` and ``train_test_split`` is kept.

    Args:
        source: path or URL, or several, of files (Arrow file or stream, Feather, Parquet); a ``pyarrow.Table``; or a
            ``datasets.Dataset``.
        columns: names of the columns.
        cache_bytes: maximum memory for decoded batches of compressed files and row groups, per process.
        memory_map: memory-map uncompressed files, which is up to 1.6 times as fast for files in the page cache. A
            truncated file or an I/O error then terminates the process with SIGBUS instead of raising an error for one
            sample.
        allow_outside_root: allow values of a field ``path`` that leave the folder of the file (the current directory
            for tables and datasets), and URLs. Only for trusted data.

    Returns:
        one output per column, on the CPU; see ``fn.readers.parquet``.

    Raises:
        ReaderError: a missing or damaged file; a null (see ``on_error``); nested lists of different lengths
            in one row.
        ArgumentTypeError: the source is of an unsupported type.
        ArgumentValueError: a column does not exist, or the dataset has a transform, which would be ignored.
        DTypeError: a column cannot be converted to arrays, or has different types in two files.

    Example:
        >>> faces = datasets.load_dataset("faces", split="train")  # doctest: +SKIP
        >>> encoded, label = fn.readers.arrow(source=faces, columns=["image", "label"])  # doctest: +SKIP
    """
    return (Spec(None, None, ""),) * len(columns)


@arrow.index
def _(source: Any, columns: Sequence[str], cache_bytes: int, memory_map: bool, allow_outside_root: bool) -> ArrowRows:
    if isinstance(source, (str, os.PathLike)):
        source = [source]
    if isinstance(source, (list, tuple)):
        if not all(isinstance(path, (str, os.PathLike)) for path in source):
            raise _source_error(source)
        paths = [os.fspath(path) for path in source]
        sources = open_sources(paths, columns, source_of_file, memory_map=memory_map)
        return ArrowRows(sources, columns, cache_bytes, allow_outside_root=allow_outside_root)
    if isinstance(source, pyarrow.Table):
        table = TableSource(source, columns, "the table")
        return ArrowRows([table], columns, cache_bytes, allow_outside_root=allow_outside_root)
    if _is_hugging_face_dataset(source):
        return _rows_of_dataset(source, columns, cache_bytes, allow_outside_root)
    raise _source_error(source)


def _is_hugging_face_dataset(source: Any) -> bool:
    # Duck typing, so that the package need not be imported.
    return all(hasattr(source, name) for name in ("data", "features", "_indices", "format"))


def _rows_of_dataset(dataset: Any, columns: Sequence[str], cache_bytes: int, allow_outside_root: bool) -> ArrowRows:
    if dataset.format.get("type") == "custom":
        raise ArgumentValueError(
            "the dataset has a transform (set_transform, with_transform), which would be ignored.",
            hint="Use fn.readers.dataset(dataset=...), or remove the transform: dataset.with_format(None).",
        )
    order = None
    if dataset._indices is not None:
        order = dataset._indices.column(0).to_numpy().astype(np.int64)
    table = TableSource(dataset.data, columns, "the dataset")
    return ArrowRows([table], columns, cache_bytes, order, allow_outside_root=allow_outside_root)


def _source_error(source: Any) -> ArgumentTypeError:
    hint = "Pass paths of .parquet, .arrow or .feather files, a pyarrow.Table, or a datasets.Dataset."
    if isinstance(source, Mapping):
        hint = f"Select one of its splits: {', '.join(f'source[{name!r}]' for name in list(source)[:5])}."
    elif hasattr(source, "__iter__") and not hasattr(source, "__len__"):
        hint = "For an iterable use fn.external_source(source=..., batch=False)."
    return ArgumentTypeError(f"source must be paths, a table or a dataset; got {type(source).__name__}.", hint=hint)


arrow.read(ArrowRow.read)
arrow.read_many(ArrowRows.read_many)
arrow.substitute(ArrowRow.substitute)
