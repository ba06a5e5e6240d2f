"""Records of LMDB databases by their number, in the order of their keys.

Alone because a process may open a database only once, whatever the number of readers, and must open it anew after a
fork. Needs the package ``lmdb``.
"""

from __future__ import annotations

import os
import weakref
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ReaderError
from dalify.base.fork_lock import ForkLock
from dalify.base.optional import LazyModule
from dalify.formats.memory import file_memory
from dalify.formats.pieces import Pieces

__all__ = ["LmdbRecord", "LmdbRecords", "lmdb"]

lmdb: Any = LazyModule("lmdb", "reading LMDB databases", "dalify[lmdb]")


class _Database:
    """An open database, shared by all that read it in this process; closed when the last of them is gone."""

    __slots__ = ("__weakref__", "environment", "process")

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self.process = os.getpid()


# The package opens no path twice, and closing takes a while. So an environment is known here until it is closed, longer
# than anybody reads it, and is opened and closed under the lock: who opens it anew never meets one that still closes.
_environments: dict[str, Any] = {}
_databases: weakref.WeakValueDictionary[str, _Database] = weakref.WeakValueDictionary()
_lock = ForkLock()


def _opened(path: str) -> _Database:
    """Return the database of a path. One that was inherited through a fork is never used."""
    key = os.path.realpath(path)
    with _lock:
        found = _databases.get(key)
        if found is None or found.process != os.getpid():
            if key in _environments:  # nobody reads it any more; or it is the parent's, who keeps its own
                _close(key, _environments[key])
            environment = _environments[key] = _open(path)
            found = _databases[key] = _Database(environment)
            weakref.finalize(found, _close, key, environment).atexit = False
        return found


def _open(path: str) -> Any:
    try:
        return lmdb.open(
            path,
            subdir=Path(path).is_dir(),
            readonly=True,
            lock=False,
            readahead=False,
            create=False,
            max_spare_txns=16,
        )
    except lmdb.Error as error:
        raise ReaderError(f"cannot open the LMDB database {path!r}: {error}.") from None


def _close(key: str, environment: Any) -> None:
    with _lock:
        environment.close()
        if _environments.get(key) is environment:
            del _environments[key]


class LmdbRecord(NamedTuple):
    """One record: which database, and its key."""

    records: LmdbRecords
    database: int
    key: bytes

    @property
    def origin(self) -> str:
        """Database and key, for messages."""
        return f"{self.records.paths[self.database]}, key {self.key.decode(errors='backslashreplace')}"

    def read(self) -> NDArray[np.uint8]:
        """Return a copy of the value, uint8 ``[bytes]``.

        Raises:
            ReaderError: the database cannot be read, or has lost the key.
        """
        environment = self.records.database(self.database).environment
        try:
            with environment.begin(buffers=True) as transaction:
                value = transaction.get(self.key)
                if value is None:
                    raise ReaderError("the database no longer has this key.")
                contents = file_memory(len(value))
                contents[:] = np.frombuffer(value, np.uint8)
                return contents
        except lmdb.Error as error:
            raise ReaderError(f"cannot read the record: {error}.") from None


class LmdbRecords(Sequence[LmdbRecord]):
    """The records of several databases, one database after the other. Pickled, it is paths and keys.

    Args:
        paths: of the databases: folders, or files.

    Raises:
        ReaderError: a database is absent or damaged.
        MissingPackageError: ``lmdb`` is not installed.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = list(paths)
        # Held while this lives; made anew in another process.
        self._open: dict[int, _Database] = {}
        keys: list[bytes] = []
        sizes: list[NDArray[np.int64]] = []
        self._firsts = [0]
        for number in range(len(self.paths)):
            with self.database(number).environment.begin() as transaction, transaction.cursor() as cursor:
                own = list(cursor.iternext(keys=True, values=False))
            keys.append(b"".join(own))
            sizes.append(np.fromiter(map(len, own), np.int64, len(own)))
            self._firsts.append(self._firsts[-1] + len(own))
        self._keys = b"".join(keys)
        self._ends = np.cumsum(np.concatenate(sizes)) if sizes else np.empty(0, np.int64)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: no open databases."""
        return {**self.__dict__, "_open": {}}

    def database(self, number: int) -> _Database:
        """Return an open database by its number.

        Raises:
            ReaderError: it is absent or damaged.
        """
        held = self._open.get(number)
        if held is None or held.process != os.getpid():
            held = self._open[number] = _opened(self.paths[number])
        return held

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> LmdbRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[LmdbRecord]: ...
    def __getitem__(self, index: int | slice) -> LmdbRecord | list[LmdbRecord]:
        """Return one record, or several."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = int(index) + len(self) if index < 0 else int(index)
        if not 0 <= number < len(self):
            raise IndexError(f"record {index} of {len(self)}")
        start = int(self._ends[number - 1]) if number else 0
        return LmdbRecord(self, bisect_right(self._firsts, number) - 1, self._keys[start : int(self._ends[number])])

    def read_many(self, numbers: NDArray[np.int64]) -> Pieces | None:
        """Return copies of values, looked up in one transaction; None where each is to be read by itself."""
        databases = np.searchsorted(self._firsts, numbers, side="right") - 1
        database = int(databases[0])
        if (databases != database).any():
            return None
        keys = self._keys
        places = zip(
            np.where(numbers > 0, self._ends[numbers - 1], 0).tolist(), self._ends[numbers].tolist(), strict=True
        )
        try:
            with self.database(database).environment.begin(buffers=True) as transaction:
                get = transaction.get
                values = [get(keys[start:stop]) for start, stop in places]
                if None in values:
                    return None
                sizes = np.fromiter(map(len, values), np.int64, len(values))
                if not Pieces.are_few(sizes):
                    return None
                pieces = Pieces(sizes)
                target = pieces.data.data
                for value, start, stop in zip(values, pieces.starts.tolist(), pieces.stops.tolist(), strict=True):
                    target[start:stop] = value
                return pieces
        except (lmdb.Error, ReaderError):
            return None

    def __repr__(self) -> str:
        """Return counts."""
        return f"LmdbRecords({len(self)} records, {len(self.paths)} databases)"
