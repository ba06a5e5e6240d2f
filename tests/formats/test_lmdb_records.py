"""LMDB databases that somebody else in the process has open."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lmdb
import pytest

from dalify.base.errors import ReaderError
from dalify.formats import lmdb_records


@pytest.fixture(name="database")
def _database(tmp_path: Path) -> str:
    with lmdb.open(str(tmp_path), map_size=1 << 20) as environment, environment.begin(write=True) as transaction:
        transaction.put(b"key", b"value")
    return str(tmp_path)


def test_one_that_another_thread_is_closing_can_be_opened(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    is_closing, may_close = threading.Event(), threading.Event()

    class Slow:
        """An environment that is closed as slowly as a test needs it."""

        def __init__(self, path: str, **options: Any) -> None:
            self._environment = open_environment(path, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._environment, name)

        def close(self) -> None:
            is_closing.set()
            may_close.wait(10)
            self._environment.close()

    open_environment = lmdb.open
    monkeypatch.setattr(lmdb_records.lmdb, "open", Slow)  # which may have looked at the package before
    held = [lmdb_records.LmdbRecords([database])]
    closing = threading.Thread(target=held.clear)
    closing.start()
    assert is_closing.wait(10)
    threading.Timer(0.05, may_close.set).start()
    assert bytes(lmdb_records.LmdbRecords([database])[0].read()) == b"value"
    closing.join()


def test_threads_that_open_and_forget_it_do_not_meet(database: str) -> None:
    def read(_: int) -> bytes:
        return bytes(lmdb_records.LmdbRecords([database])[0].read())

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(read, range(400))) == {b"value"}


def test_one_that_the_user_has_open_is_an_error(database: str) -> None:
    with lmdb.open(database, readonly=True, lock=False), pytest.raises(ReaderError, match="already open"):
        lmdb_records.LmdbRecords([database])
    assert len(lmdb_records.LmdbRecords([database])) == 1
