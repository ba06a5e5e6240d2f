"""A cache in a folder: stored samples, crashes, damage, its limit, several processes."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from dalify.data import sample_folder
from dalify.data.sample_folder import SampleFolder
from dalify.data.sample_memory import StoredSample
from tests.helpers.platforms import needs_posix

DIGEST, OTHER = "0" * 32, "f" * 32
MOST = 1 << 22


def _sample(value: int, size: int = 3000) -> StoredSample:
    return StoredSample((np.full((size // 3, 3), value % 256, np.uint8), np.array([value], np.int64)), ("HC", ""))


def _empty(size: int) -> np.ndarray:
    return np.empty(size, np.uint8)


def _value(found: StoredSample | None) -> int | None:
    if found is None:
        return None
    value = int(found.arrays[1][0])
    assert (found.arrays[0] == value % 256).all()
    return value


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if sample_folder._OWN_FILE.fullmatch(path.name))


def _taken(folder: Path) -> int:
    return sum(path.stat().st_size for path in _files(folder))


@pytest.mark.parametrize(
    "arrays",
    [
        (np.arange(24, dtype=np.float32).reshape(2, 3, 4),),
        (np.array(5, np.int16), np.zeros((0, 4), np.float64), np.array([True, False])),
        (np.arange(6, dtype=np.float32).astype(ml_dtypes.bfloat16), np.arange(9, dtype=np.float16)[::2]),
    ],
)
def test_what_comes_back(tmp_path: Path, arrays: tuple[np.ndarray, ...]) -> None:
    layouts = tuple("ABCDEF"[: array.ndim] for array in arrays)
    assert SampleFolder(str(tmp_path), DIGEST, MOST).put("key\0\udc80", "1", StoredSample(arrays, layouts))
    found = SampleFolder(str(tmp_path), DIGEST, MOST).get("key\0\udc80", "1", _empty)  # as another process has it
    assert found is not None
    assert found.layouts == layouts
    for array, wanted in zip(found.arrays, arrays, strict=True):
        assert array.dtype == wanted.dtype
        assert array.shape == wanted.shape
        assert array.tobytes() == wanted.tobytes()


def test_key_state_and_digest(tmp_path: Path) -> None:
    folder = SampleFolder(str(tmp_path), DIGEST, MOST)
    folder.put("a", "1", _sample(1))
    assert folder.get("b", "1", _empty) is None
    assert folder.get("a", "2", _empty) is None
    assert SampleFolder(str(tmp_path), OTHER, MOST).get("a", "1", _empty) is None
    folder.put("a", "2", _sample(2))
    assert _value(folder.get("a", "2", _empty)) == 2
    assert len(_files(tmp_path)) == 1  # the changed sample took the place of the old one
    assert folder.size_bytes == _taken(tmp_path)


@pytest.mark.parametrize("place", [0, 9, 20, 40, 200, -1])
def test_damage_is_found(tmp_path: Path, place: int) -> None:
    folder = SampleFolder(str(tmp_path), DIGEST, MOST)
    folder.put("a", "1", _sample(1))
    (path,) = _files(tmp_path)
    contents = bytearray(path.read_bytes())
    contents[place] ^= 16
    path.write_bytes(contents)
    assert folder.get("a", "1", _empty) is None
    assert not path.exists()
    assert folder.size_bytes == 0
    assert folder.put("a", "1", _sample(1))
    assert _value(folder.get("a", "1", _empty)) == 1


@pytest.mark.parametrize("size", [0, 10, 28, 500, 5000])
def test_cut_off_or_longer_files(tmp_path: Path, size: int) -> None:
    folder = SampleFolder(str(tmp_path), DIGEST, MOST)
    folder.put("a", "1", _sample(1))
    (path,) = _files(tmp_path)
    os.truncate(path, size)
    assert folder.get("a", "1", _empty) is None


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder = SampleFolder(str(tmp_path / "cache"), DIGEST, MOST)
    folder.put("a", "1", _sample(1))
    (path,) = _files(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert folder.get("a", "1", _empty) is None
    folder.put("a", "1", _sample(2))
    assert _value(folder.get("a", "1", _empty)) == 2
    assert b"\x01" * 3000 in elsewhere.read_bytes()


def test_bound(tmp_path: Path) -> None:
    folder = SampleFolder(str(tmp_path), DIGEST, 40_000)
    kept = [number for number in range(30) if folder.put(str(number), "", _sample(number))]
    assert 8 <= len(kept) < 30
    assert _taken(tmp_path) <= 40_000
    assert folder.size_bytes == _taken(tmp_path)
    assert [_value(folder.get(str(number), "", _empty)) for number in kept] == kept
    # The first samples stay, and for the others the cache is full.
    began = time.process_time()
    assert not any(folder.put(str(number), "", _sample(number)) for number in range(100, 1100))
    assert time.process_time() - began < 5.0


def test_unused_samples_are_deleted_to_make_room(tmp_path: Path) -> None:
    old = SampleFolder(str(tmp_path), OTHER, 40_000)
    for number in range(30):
        old.put(str(number), "", _sample(number))
    assert not SampleFolder(str(tmp_path), DIGEST, 40_000).put("a", "", _sample(1))  # it may be in use
    long_ago = time.time() - 2 * 3600
    os.utime(tmp_path / OTHER / "used", (long_ago, long_ago))
    folder = SampleFolder(str(tmp_path), DIGEST, 40_000)
    assert folder.put("a", "", _sample(1))
    assert _value(folder.get("a", "", _empty)) == 1
    assert old.get("0", "", _empty) is None
    assert folder.size_bytes == _taken(tmp_path)


def test_files_of_others_are_kept(tmp_path: Path) -> None:
    for name in ("notes.txt", f"{OTHER}/notes.txt", f"{OTHER}/ab/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    folder = SampleFolder(str(tmp_path), DIGEST, 10_000)
    for number in range(30):
        folder.put(str(number), "", _sample(number))
    assert len(list(tmp_path.rglob("notes.txt"))) == 3


def test_a_damaged_count_is_recomputed(tmp_path: Path) -> None:
    folder = SampleFolder(str(tmp_path), DIGEST, MOST)
    folder.put("a", "", _sample(1))
    for text in (b"", b"nonsense", b"12345678" * 2):
        (tmp_path / sample_folder._LOCK_NAME).write_bytes(text)
        assert folder.put(f"b{text!r}", "", _sample(1))
        assert folder.size_bytes == _taken(tmp_path)


def test_a_full_disk_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SampleFolder(str(tmp_path), DIGEST, MOST)
    folder.put("a", "", _sample(1))

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sample_folder.os, "truncate", refuse)
    with pytest.warns(UserWarning, match="the disk is full"):
        assert not folder.put("b", "", _sample(1))
    assert not folder.put("c", "", _sample(1))
    assert _value(folder.get("a", "", _empty)) == 1


def test_a_folder_that_is_deleted_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample is not stored; the folder is created again for the next one."""
    folder = SampleFolder(str(tmp_path / "cache"), DIGEST, MOST)
    try_lock = sample_folder.try_lock

    def deleting(descriptor: int) -> bool:
        shutil.rmtree(tmp_path / "cache")
        return try_lock(descriptor)

    monkeypatch.setattr(sample_folder, "try_lock", deleting)
    assert not folder.put("a", "", _sample(1))
    monkeypatch.undo()
    assert folder.put("b", "", _sample(2))
    assert _value(folder.get("b", "", _empty)) == 2


def test_an_unreadable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    folder = SampleFolder(str(tmp_path), DIGEST, MOST)
    assert folder.put("a", "", _sample(1))
    for name in ("stat", "lstat"):
        monkeypatch.setattr(Path, name, refuse)
    assert not folder.has("a", "")


# -- several processes

_WRITER = """
import sys
import numpy as np
from dalify.data.sample_folder import SampleFolder
from dalify.data.sample_memory import StoredSample
folder = SampleFolder(sys.argv[1], "0" * 32, int(sys.argv[2]))
print("begun", flush=True)
number = int(sys.argv[3])
while True:
    value = np.full((200_000, 3), number % 256, np.uint8)
    folder.put(str(number), "", StoredSample((value, np.array([number], np.int64)), ("HC", "")))
    number += 1
"""


@needs_posix
def test_killed_while_writing(tmp_path: Path) -> None:
    """What a killed process leaves is whole or not taken for a sample, and is cleared away when room is wanted."""
    most = 1 << 29  # more than they can write in this time
    for attempt in range(5):
        program = [sys.executable, "-c", _WRITER, str(tmp_path), str(most), str(attempt * 10_000)]
        with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.02 + 0.013 * attempt)
            process.kill()
    folder = SampleFolder(str(tmp_path), DIGEST, most)
    found = [folder.get(str(attempt * 10_000 + number), "", _empty) for attempt in range(5) for number in range(400)]
    assert sum(_value(sample) is not None for sample in found) == sum(".part" not in p.name for p in _files(tmp_path))
    assert _taken(tmp_path) <= folder.size_bytes <= most
    # A file without an owner, as after a crash.
    left = tmp_path / DIGEST / "00" / f"{'0' * 30}.{'1' * 16}.part"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half")
    most = _taken(tmp_path) + 10_000_000
    folder = SampleFolder(str(tmp_path), DIGEST, most)
    number = 0
    while folder.put(f"more {number}", "", _sample(number, 3_000_000)):
        number += 1
    assert number > 0
    assert not list(tmp_path.rglob("*.part"))
    assert folder.size_bytes == _taken(tmp_path) <= most


def _put_and_get(folder: str, most: int, seed: int, results: object) -> None:
    cache = SampleFolder(folder, DIGEST, most)
    random = np.random.default_rng(seed)
    wrong = 0
    for _ in range(300):
        number = int(random.integers(0, 80))
        found = cache.get(str(number), "", _empty)
        if found is None:
            cache.put(str(number), "", _sample(number, 3000 + 30 * number))
        elif _value(found) != number:
            wrong += 1
    results.put((wrong, cache.size_bytes))  # type: ignore[attr-defined]


@pytest.mark.parametrize("most", [MOST, 100_000])
def test_several_processes(tmp_path: Path, most: int) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_put_and_get, args=(str(tmp_path), most, seed, results)) for seed in range(3)]
    for process in processes:
        process.start()
    found = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    assert [wrong for wrong, _ in found] == [0, 0, 0]
    cache = SampleFolder(str(tmp_path), DIGEST, most)
    assert cache.size_bytes == _taken(tmp_path) <= most
    assert not list(tmp_path.rglob("*.part"))
    if most == MOST:
        assert all(cache.has(str(number), "") for number in range(80))
