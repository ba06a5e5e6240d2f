"""LMDB databases compared with the package of LMDB's authors, and with many kinds of damage."""

from __future__ import annotations

import os
import pickle
import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dalify.base import limits
from dalify.base.errors import LimitError, ReaderError
from dalify.formats.records.lmdb_records import LmdbRecords

lmdb = pytest.importorskip("lmdb", reason="the databases are written with LMDB's package")

Items = list[tuple[bytes, bytes]]
META_BYTES = 152  # of a meta page


def written(path: Path, items: Items, *, is_folder: bool = True, rewrites: bool = False) -> Items:
    """Write a database; return its records as read by the package."""
    with lmdb.open(str(path), map_size=1 << 26, subdir=is_folder) as environment:
        with environment.begin(write=True) as transaction:
            for key, value in items:
                transaction.put(key, value)
        if rewrites:  # pages are freed and used again
            for step in (3, 4, 5):
                with environment.begin(write=True) as transaction:
                    for key, value in items[::step]:
                        transaction.delete(key)
                        if step != 5:
                            transaction.put(key, value + b"again")
        with environment.begin() as transaction:
            return list(transaction.cursor())


def records(path: Path) -> Items:
    found = LmdbRecords([str(path)])
    return [(found.key(number), record.read().tobytes()) for number, record in enumerate(found)]


def items_of(count: int, longest: int, *, key_bytes: int = 0) -> Items:
    draw = random.Random(count)
    keys = [draw.randbytes(draw.randint(1, key_bytes)) if key_bytes else b"%08d" % number for number in range(count)]
    return [(key, draw.randbytes(draw.randint(0, longest))) for key in keys]


@pytest.mark.parametrize("rewrites", [False, True])
@pytest.mark.parametrize(
    "items",
    [
        [],
        [(b"k", b"")],
        items_of(3, 50),
        items_of(400, 9000),  # in overflow pages
        items_of(5000, 20),  # branches of several levels
        items_of(800, 40, key_bytes=500),
        [(b"large", bytes(5 << 20)), (b"small", b"1")],
    ],
    ids=lambda items: str(len(items)),
)
def test_compared_with_the_package(tmp_path: Path, items: Items, rewrites: bool) -> None:
    wanted = written(tmp_path, items, rewrites=rewrites)
    assert records(tmp_path) == wanted


def test_read_together_and_separately(tmp_path: Path) -> None:
    first = written(tmp_path / "a", items_of(100, 5000))
    second = written(tmp_path / "b", items_of(30, 10), is_folder=False)
    found = LmdbRecords([str(tmp_path / "a"), str(tmp_path / "b")])
    wanted = [value for _, value in first + second]
    numbers = np.random.default_rng(0).permutation(len(found))
    pieces = found.read_many(numbers)
    assert pieces is not None
    assert [sample.tobytes() for sample in pieces.samples().samples] == [wanted[number] for number in numbers]
    assert [record.read().tobytes() for record in pickle.loads(pickle.dumps(found))] == wanted
    assert found[100].origin.startswith(str(tmp_path / "b"))


def test_no_lock_file_and_no_right_to_write_is_needed(tmp_path: Path) -> None:
    wanted = written(tmp_path / "a", items_of(5, 5))
    (tmp_path / "a" / "lock.mdb").unlink()
    (tmp_path / "a").chmod(0o500)
    (tmp_path / "a" / "data.mdb").chmod(0o400)
    assert records(tmp_path / "a") == wanted
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["data.mdb"]
    (tmp_path / "a").chmod(0o700)


def test_a_file_that_is_already_open_in_the_process(tmp_path: Path) -> None:
    wanted = written(tmp_path, items_of(5, 5))
    with lmdb.open(str(tmp_path), readonly=True, lock=False):
        assert records(tmp_path) == wanted


def test_pages_of_another_size(tmp_path: Path) -> None:
    """Databases have the page size of the system that wrote them: 16 KiB on Macs."""
    size = 16384

    def meta(transaction: int, root: int, entries: int) -> bytes:
        free = struct.pack("<IHHQQQQQ", size, 0, 0, 0, 0, 0, 0, (1 << 64) - 1)
        main = struct.pack("<IHHQQQQQ", 0, 0, 1, 0, 1, 0, entries, root)
        head = struct.pack("<QHHHHIIQQ", transaction & 1, 0, 8, 0, 0, 0xBEEFC0DE, 1, 0, 1 << 20)
        return (head + free + main + struct.pack("<QQ", 3, transaction)).ljust(size, b"\0")

    node = struct.pack("<HHHH", 5, 0, 0, 3) + b"keyvalue"[:3] + b"value"
    leaf = bytearray(size)
    leaf[:18] = struct.pack("<QHHHHH", 2, 0, 2, 18, size - len(node), size - len(node))
    leaf[-len(node) :] = node
    (tmp_path / "data.mdb").write_bytes(meta(0, (1 << 64) - 1, 0) + meta(1, 2, 1) + leaf)
    assert records(tmp_path) == [(b"key", b"value")]


def cut(size: int) -> Callable[[bytearray], None]:
    def damage(data: bytearray) -> None:
        del data[size:]

    return damage


def put(place: int, number: int, size: int) -> Callable[[bytearray], None]:
    def damage(data: bytearray) -> None:
        for page in (0, 4096):
            data[page + place : page + place + size] = number.to_bytes(size, "little")

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut(0), "ends before"),
        (cut(100), "ends before"),
        (cut(6301), "page 2|beyond its end|ends before"),  # as long as the first page of records
        (cut(8192), "beyond its end"),
        (put(16, 0, 4), "does not start with a valid meta page"),
        (put(20, 2, 4), "format version 2"),
        (put(40, 1000, 4), "page size of 1000 bytes"),
        (put(40, 1 << 31, 4), "page size of"),
        (put(40 + 48 + 6, 33, 2), "33 levels of pages"),
        (put(40 + 48 + 4, 4, 2), "duplicate keys"),
        (put(40 + 48 + 32, 1 << 60, 8), "max_declared_samples"),
        (put(40 + 48 + 32, 2, 8), "declares 2 records but contains"),
        (put(40 + 48 + 40, 1 << 50, 8), "beyond its end"),
        (put(40 + 48 + 40, 0, 8), "page 0 is damaged"),
    ],
)
def test_damaged(tmp_path: Path, damage: Callable[[bytearray], None], message: str) -> None:
    written(tmp_path, items_of(40, 9000))
    data = bytearray((tmp_path / "data.mdb").read_bytes())
    damage(data)
    (tmp_path / "data.mdb").write_bytes(data)
    with pytest.raises((ReaderError, LimitError), match=message):
        LmdbRecords([str(tmp_path)])


def test_a_page_that_is_its_own_child(tmp_path: Path) -> None:
    written(tmp_path, items_of(2000, 20))
    data = bytearray((tmp_path / "data.mdb").read_bytes())
    newer = max((0, 4096), key=lambda page: struct.unpack_from("<Q", data, page + META_BYTES - 8))
    root = struct.unpack_from("<Q", data, newer + 40 + 48 + 40)[0] * 4096
    struct.pack_into("<H", data, newer + 40 + 48 + 6, 32)  # levels
    for node in struct.unpack_from(f"<{(struct.unpack_from('<H', data, root + 12)[0] - 16) // 2}H", data, root + 16):
        struct.pack_into("<HHH", data, root + node, root // 4096, 0, 0)
    (tmp_path / "data.mdb").write_bytes(data)
    with pytest.raises(ReaderError, match="more than once"):
        LmdbRecords([str(tmp_path)])


def test_random_damage_is_an_error_or_goes_unnoticed(tmp_path: Path) -> None:
    written(tmp_path, items_of(60, 6000))
    data = (tmp_path / "data.mdb").read_bytes()
    draw = random.Random(0)
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(draw.randint(1, 6)):
            page = draw.randrange(len(data) // 4096) * 4096
            changed[page + draw.randrange(draw.choice((20, 160, 4096)))] = draw.randrange(256)
        if draw.random() < 0.3:
            del changed[draw.randrange(len(changed)) :]
        (tmp_path / "data.mdb").write_bytes(changed)
        try:
            records(tmp_path)
        except (ReaderError, LimitError):
            continue


def test_truncated_while_it_is_read(tmp_path: Path) -> None:
    written(tmp_path, items_of(20, 9000))
    found = LmdbRecords([str(tmp_path)])
    os.truncate(tmp_path / "data.mdb", 3 * 4096)
    assert found.read_many(np.arange(20)) is None
    with pytest.raises(ReaderError, match="ends before"):
        _ = [record.read() for record in found]


def test_a_change_while_it_is_read(tmp_path: Path) -> None:
    written(tmp_path, items_of(20, 9000))
    found = LmdbRecords([str(tmp_path)])
    assert found.read_many(np.arange(3)) is not None
    written(tmp_path, [(b"new", b"value")])
    assert found.read_many(np.arange(3)) is None
    with pytest.raises(ReaderError, match="was changed"):
        found[0].read()


def test_values_have_a_limit(tmp_path: Path) -> None:
    written(tmp_path, [(b"k", bytes(20000))])
    found = LmdbRecords([str(tmp_path)])
    with limits.applied(limits.Limits(max_sample_bytes=10000)):
        assert found.read_many(np.arange(1)) is None
        with pytest.raises(LimitError, match="max_sample_bytes"):
            found[0].read()
