"""LMDB databases that somebody else in the process has open."""

from __future__ import annotations

import threading
from pathlib import Path

import lmdb
import pytest

from dalify.base.errors import ReaderError
from dalify.formats import lmdb_records


@pytest.fixture(name="database")
def _database(tmp_path: Path) -> str:
    with lmdb.open(str(tmp_path), map_size=1 << 20) as environment, environment.begin(write=True) as transaction:
        transaction.put(b"key", b"value")
    return str(tmp_path)


def test_one_that_is_being_closed_is_waited_for(database: str) -> None:
    environment = lmdb.open(database, readonly=True, lock=False)
    closing = threading.Timer(0.1, environment.close)
    closing.start()
    records = lmdb_records.LmdbRecords([database])
    closing.join()
    assert bytes(records[0].read()) == b"value"


def test_one_that_stays_open_is_an_error(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmdb_records, "_PATIENCE_S", 0.05)
    with lmdb.open(database, readonly=True, lock=False), pytest.raises(ReaderError, match="already open"):
        lmdb_records.LmdbRecords([database])
    assert len(lmdb_records.LmdbRecords([database])) == 1
