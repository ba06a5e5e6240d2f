"""Read columns of Arrow files and tables, and of data sets of Hugging Face."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, ReaderError
from dalify.base.optional import LazyModule
from dalify.formats.arrow_rows import ArrowRow, ArrowRows
from dalify.formats.arrow_tables import TableSource, opened, source_of_file
from dalify.registry import Spec, operator

pyarrow = LazyModule("pyarrow", "reading Arrow data", "dalify[arrow]")


def _count(arguments: Mapping[str, Any]) -> int:
    if not arguments["columns"]:
        raise ArgumentValueError("columns is empty: there is nothing to read.", hint="For example columns=['image'].")
    return len(arguments["columns"])


@operator(outputs=_count, reader=True, needs=(pyarrow,))
def arrow(
    *,
    source: object,
    columns: list[str],
    cache_bytes: int = 1 << 30,
    memory_map: bool = False,
    allow_outside_root: bool = False,
) -> tuple[Spec, ...]:
    """Read rows of Arrow data: files, a table in memory, or a data set of Hugging Face; DALI has no such reader.

    Of files that are not compressed, every row is read by itself. Batches of compressed files are decoded as a whole
    and shuffled as row groups are; see ``fn.readers.parquet``. Those of compressed streams stay in memory.

    Of a data set of Hugging Face, the columns are read as they are stored: pictures and sounds come as their encoded
    bytes, to be decoded here. What ``select``, ``shuffle``, ``filter`` and ``train_test_split`` have chosen is kept.

    Args:
        source: path or URL, or several, of files (Arrow file or stream, Feather, Parquet); a ``pyarrow.Table``; or a
            ``datasets.Dataset``.
        columns: names of the columns.
        cache_bytes: most memory for decoded batches of compressed files and row groups, in each process.
        memory_map: look at the values of uncompressed files in memory maps, which is up to 1.6 times as fast where the
            files are in the page cache. But a file that becomes shorter, or a disk or network that fails, then ends the
            process with SIGBUS; otherwise it is an error of one sample.
        allow_outside_root: a field ``path`` may lead out of the folder of its file (of the working folder, for tables
            and data sets), and be a URL. Only for data that can be trusted.

    Returns:
        one output per column, on the CPU; see ``fn.readers.parquet``.

    Raises:
        ReaderError: a file that is missing or damaged; a null (see ``on_error``); nested lists of different lengths
            in one row.
        ArgumentTypeError: a source of another kind.
        ArgumentValueError: a column that is not there, or a data set with a transform, which would be passed over.
        DTypeError: a column of which no arrays can be made, or of different types in two files.

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
        if not source:
            raise ReaderError("there are no paths.")
        if not all(isinstance(path, (str, os.PathLike)) for path in source):
            raise _no_source(source)
        paths = [os.fspath(path) for path in source]
        sources = opened(paths, columns, source_of_file, memory_map=memory_map)
        return ArrowRows(sources, columns, cache_bytes, allow_outside_root=allow_outside_root)
    if isinstance(source, pyarrow.Table):
        table = TableSource(source, columns, "the table")
        return ArrowRows([table], columns, cache_bytes, allow_outside_root=allow_outside_root)
    if _is_of_hugging_face(source):
        return _rows_of_dataset(source, columns, cache_bytes, allow_outside_root)
    raise _no_source(source)


def _is_of_hugging_face(source: Any) -> bool:
    # By what it has: the package need not be installed.
    return all(hasattr(source, name) for name in ("data", "features", "_indices", "format"))


def _rows_of_dataset(dataset: Any, columns: Sequence[str], cache_bytes: int, allow_outside_root: bool) -> ArrowRows:
    if dataset.format.get("type") == "custom":
        raise ArgumentValueError(
            "the data set has a transform (set_transform, with_transform), which would be passed over.",
            hint="Use fn.readers.dataset(dataset=...), or take the transform away: dataset.with_format(None).",
        )
    order = None
    if dataset._indices is not None:
        order = dataset._indices.column(0).to_numpy().astype(np.int64)
    table = TableSource(dataset.data, columns, "the data set")
    return ArrowRows([table], columns, cache_bytes, order, allow_outside_root=allow_outside_root)


def _no_source(source: Any) -> ArgumentTypeError:
    hint = "Give paths of .parquet, .arrow or .feather files, a pyarrow.Table, or a datasets.Dataset."
    if isinstance(source, Mapping):
        hint = f"Choose one of its parts: {', '.join(f'source[{name!r}]' for name in list(source)[:5])}."
    elif hasattr(source, "__iter__") and not hasattr(source, "__len__"):
        hint = "What is iterated is a source: fn.external_source(source=..., batch=False)."
    return ArgumentTypeError(f"source cannot be of type {type(source).__name__}.", hint=hint)


@arrow.read
def _(row: ArrowRow) -> tuple[np.ndarray[Any, Any], ...]:
    return row.read()


@arrow.read_many
def _(rows: ArrowRows, numbers: np.ndarray[Any, Any]) -> tuple[Any, ...] | None:
    return rows.read_many(numbers)


@arrow.stand_in
def _(row: ArrowRow) -> tuple[np.ndarray[Any, Any] | None, ...]:
    return row.stand_in()


@arrow.origin
def _(row: ArrowRow) -> str:
    return row.origin
