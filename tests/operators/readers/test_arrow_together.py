"""Rows of Arrow data that are read in one call, compared with reading them one by one, also for damaged data."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify.base.errors import ReaderError
from dalify.base.limits import Limits, applied
from dalify.data import Batch
from dalify.formats.tables.arrow_rows import ArrowRow, ArrowRows
from dalify.formats.tables.arrow_tables import TableFiles, TableSource, open_sources, source_of_file

pa = pytest.importorskip("pyarrow", reason="the extra dalify[arrow]")

COUNT = 40
COLUMNS = ["small", "large", "picture", "number", "list", "fixed"]


def _table() -> Any:
    numbers = range(COUNT)
    return pa.table(
        {
            "small": [f"text {n}" * (n % 3) for n in numbers],
            "large": pa.array([bytes([n]) * (1500 * (n % 3)) for n in numbers], pa.large_binary()),
            "picture": [{"bytes": bytes([n]) * 2000, "path": None} for n in numbers],
            "number": pa.array(numbers, pa.int16()),
            "list": [[n] * (n % 4) for n in numbers],
            "fixed": pa.array([bytes([n, n + 1]) for n in numbers], pa.binary(2)),
        }
    )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_rows_of_several_blocks_equal_rows_read_separately(data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, COUNT - 1), max_size=9)))
    table = _table()
    parts = [table.slice(start, stop - start) for start, stop in zip([0, *cuts], [*cuts, COUNT], strict=True)]
    order = data.draw(st.none() | st.permutations(range(COUNT)))
    source = TableSource(pa.concat_tables(parts), COLUMNS, "the table")
    rows = ArrowRows([source], COLUMNS, 1 << 20, None if order is None else np.array(order))
    consecutive = st.integers(0, COUNT - 12).flatmap(
        lambda first: st.integers(1, 12).map(lambda n: range(first, first + n))
    )
    numbers = np.array(data.draw(consecutive | st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=12)))
    together = rows.read_many(numbers)
    assert together is not None
    for column, expected in zip(together, zip(*(rows[number].read() for number in numbers), strict=True), strict=True):
        assert len(column) == len(numbers)
        samples = column.samples if isinstance(column, Batch) else column
        for one, other in zip(samples, expected, strict=True):
            assert np.asarray(one).dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("memory_map", [False, True])
def test_consecutive_rows_of_a_file_equal_rows_read_separately(memory_map: bool, tmp_path: Path) -> None:
    path = str(tmp_path / "a.arrow")
    table = _table()
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=COUNT // 2)
    sources = open_sources([path], COLUMNS, source_of_file, memory_map=memory_map)
    rows = ArrowRows(sources, COLUMNS, 1 << 20)
    for start, stop in ((0, COUNT // 2), (3, 4), (COUNT // 2, COUNT), (15, 25)):
        # A limit for samples does not apply to the rows that are read in one call.
        with applied(Limits(max_sample_bytes=3000)):
            together = rows.read_many(np.arange(start, stop))
        assert together is not None
        for name, column in zip(COLUMNS, together, strict=True):
            samples = column.samples if isinstance(column, Batch) else column
            for one, other in zip(samples, table.column(name).to_pylist()[start:stop], strict=True):
                value = other["bytes"] if isinstance(other, dict) else other
                expected = np.frombuffer(value.encode(), np.uint8) if isinstance(value, str) else value
                expected = np.frombuffer(expected, np.uint8) if isinstance(expected, bytes) else expected
                np.testing.assert_array_equal(one, expected)
                assert one.ndim == 0 or one.flags.writeable


@pytest.mark.parametrize("offsets", [[0, 1, 1 << 30, 4], [0, 5, 1, 4], [3, 1, 2, 4], [0, 9, 9, 4]])
def test_offsets_outside_of_the_data_are_never_used(offsets: list[int]) -> None:
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32).tobytes()), pa.py_buffer(b"abcd")]
    damaged = pa.Array.from_buffers(pa.binary(), 3, buffers)
    rows = ArrowRows([TableSource(pa.table({"x": damaged}), ["x"], "the table")], ["x"], 1 << 20)
    assert rows.read_many(np.arange(3)) is None
    with pytest.raises(ReaderError, match=r"the column .x. in row . of the table: the data is damaged"):
        list(map(ArrowRow.read, rows))


def test_nulls_are_left_to_the_function_that_names_the_row() -> None:
    table = pa.table({"bytes": [b"a", None, b"c"], "number": [1, None, 3]})
    for name in table.column_names:
        rows = ArrowRows([TableSource(table, [name], "the table")], [name], 1 << 20)
        assert rows.read_many(np.arange(3)) is None
        assert rows.read_many(np.array([0, 2])) is not None


def test_remote_files_are_opened_in_parallel_and_in_order() -> None:
    together = threading.Barrier(4, timeout=60)

    def opened(files: TableFiles, number: int, columns: Sequence[str]) -> Any:
        if number < together.parties:
            together.wait()
        return files.paths[number], columns

    paths = [f"memory://opened/{number}.parquet" for number in range(40)]
    assert open_sources(paths, COLUMNS, opened) == [(path, COLUMNS) for path in paths]
