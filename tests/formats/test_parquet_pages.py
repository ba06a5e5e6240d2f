"""Byte strings that are read from the pages of Parquet files, compared with pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify.formats.tables.arrow_tables import ParquetSource, TableFiles
from dalify.formats.tables.parquet_pages import Chunk, byte_strings

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

RANDOM = np.random.default_rng(0)
COUNT = 300
STRINGS = [RANDOM.bytes(int(size)) for size in RANDOM.integers(13, 3000, COUNT)]
REPEATED = [STRINGS[number] for number in RANDOM.integers(0, 20, COUNT)]
COMPRESSIBLE = [bytes([number % 256]) * (13 + number) for number in range(COUNT)]
KINDS = {"random": STRINGS, "repeated": REPEATED, "compressible": COMPRESSIBLE}

OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "uncompressed": {"compression": "none"},
    "plain": {"use_dictionary": False},
    "plain, uncompressed": {"use_dictionary": False, "compression": "none"},
    "small pages": {"data_page_size": 2000, "use_dictionary": False},
    "small dictionary": {"dictionary_pagesize_limit": 5000, "data_page_size": 4000},
    "groups of other sizes": {"row_group_size": 37},
    "groups of one row": {"row_group_size": 1},
    "statistics": {"write_statistics": True, "write_page_index": True},
}
LEFT: dict[str, dict[str, Any]] = {
    "other codec": {"compression": "zstd"},
    "checksums": {"write_page_checksum": True},
    "pages of version 2": {"data_page_version": "2.0"},
    "other encoding": {"use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"},
}


def column(kind: str, values: list[bytes]) -> Any:
    """Return a table with a column ``x``."""
    if kind == "struct":
        fields = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        return pa.table({"x": pa.array([{"bytes": value, "path": "a"} for value in values], fields), "y": values})
    if kind == "string":
        return pa.table({"x": [value.hex() for value in values], "y": values})
    schema = pa.schema([pa.field("x", getattr(pa, kind.split(",")[0])(), nullable="required" not in kind)])
    return pa.table({"x": values}, schema)


def source(path: Path) -> ParquetSource:
    return ParquetSource(TableFiles([str(path)]), 0, ["x"])


def values_of(table: Any) -> list[Any]:
    items = table.column("x").to_pylist()
    return [item["bytes"] if isinstance(item, dict) else item for item in items]


def as_bytes(values: list[Any]) -> list[bytes]:
    return [value.encode() if isinstance(value, str) else value for value in values]


@pytest.mark.parametrize("kind", ["binary", "binary, required", "large_binary", "string", "struct"])
@pytest.mark.parametrize("data", KINDS)
@pytest.mark.parametrize("options", OPTIONS)
def test_values_equal_pyarrow(tmp_path: Path, kind: str, data: str, options: str):
    pq.write_table(column(kind, KINDS[data]), tmp_path / "a.parquet", **OPTIONS[options])
    reader, file = source(tmp_path / "a.parquet"), pq.ParquetFile(tmp_path / "a.parquet")
    assert len(reader.entries) == file.num_row_groups
    for group in range(file.num_row_groups):
        assert set(reader._read_byte_strings(group)) == {"x"}
        found = values_of(reader.load(group)[0])
        assert as_bytes(found) == as_bytes(values_of(file.read_row_group(group)))


@pytest.mark.parametrize("options", LEFT)
def test_what_is_left_to_pyarrow(tmp_path: Path, options: str):
    pq.write_table(column("binary", STRINGS), tmp_path / "a.parquet", **LEFT[options])
    reader = source(tmp_path / "a.parquet")
    assert reader._read_byte_strings(0) == {}
    assert values_of(reader.load(0)[0]) == STRINGS


@pytest.mark.parametrize("special", [None, b"", b"short"])
@pytest.mark.parametrize("place", [0, 7, COUNT - 1])
def test_nulls_and_short_strings_are_left_to_pyarrow(tmp_path: Path, special: bytes | None, place: int):
    values: list[Any] = list(STRINGS)
    values[place] = special
    pq.write_table(column("binary", values), tmp_path / "a.parquet")
    reader = source(tmp_path / "a.parquet")
    assert reader._read_byte_strings(0) == {}
    assert values_of(reader.load(0)[0]) == values
    assert not reader._chunks  # it is not attempted again


def test_other_columns_are_read_by_pyarrow(tmp_path: Path):
    table = pa.table({"x": STRINGS, "number": np.arange(COUNT), "text": [str(n) for n in range(COUNT)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    reader = ParquetSource(TableFiles([str(tmp_path / "a.parquet")]), 0, ["text", "x", "number"])
    for group in range(3):
        found = reader.load(group)[0]
        for name in ("x", "number", "text"):
            assert found.column(name).to_pylist() == table.column(name)[100 * group : 100 * group + 100].to_pylist()


@pytest.mark.parametrize("options", ["default", "plain", "plain, uncompressed", "small dictionary"])
@pytest.mark.parametrize("required", ["", ", required"])
def test_damaged_pages(tmp_path: Path, options: str, required: str):
    """Data from damaged pages equal those of pyarrow; other pages are read by pyarrow."""
    values = REPEATED[:40]
    path = tmp_path / "a.parquet"
    pq.write_table(column(f"binary{required}", values), path, **OPTIONS[options])
    data = np.fromfile(path, np.uint8)
    described = pq.read_metadata(path).row_group(0).column(0)
    first = described.dictionary_page_offset or described.data_page_offset
    size, codec = described.total_compressed_size, {"SNAPPY": 1, "UNCOMPRESSED": 0}[described.compression]
    chunk = Chunk(first, size, described.total_uncompressed_size, len(values), codec, 0 if required else 1)

    def read(offset: int, count: int) -> np.ndarray:
        return damaged[offset : offset + count].copy()

    damaged = data
    assert byte_strings(chunk, read).to_pylist() == values
    random = np.random.default_rng(1)
    places = np.unique(np.concatenate([np.arange(60), random.integers(0, size, 300), size - 1 - np.arange(60)]))
    differing = 0
    for place in places[places < size]:
        damaged = data.copy()
        damaged[first + place] ^= random.integers(1, 256, dtype=np.uint8)
        try:
            found = byte_strings(chunk, read)
        except Exception:
            found = None
        if found is None:
            continue
        found.validate(full=True)
        try:
            wanted = pq.ParquetFile(pa.BufferReader(damaged.tobytes())).read().column("x").to_pylist()
        except Exception:
            differing += 1  # statistics and other numbers that are not used here
            continue
        assert found.to_pylist() == wanted
    assert differing < 20


@pytest.mark.parametrize("stop", [0, 1, 10, 50])
def test_truncated_pages(tmp_path: Path, stop: int):
    path = tmp_path / "a.parquet"
    pq.write_table(column("binary", STRINGS), path)
    data = np.fromfile(path, np.uint8)
    described = pq.read_metadata(path).row_group(0).column(0)
    chunk = Chunk(4, described.total_compressed_size, described.total_uncompressed_size, COUNT, 1, 1)
    for size in (stop, chunk.stored_bytes - stop - 1):
        assert byte_strings(chunk, lambda offset, _, size=size: data[offset : offset + size]) is None
