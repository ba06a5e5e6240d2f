"""Reading at a position, with and without the function of the system."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from dalify.base.regular_files import OPEN_FLAGS
from dalify.formats.files import open_files, positions, whole_file
from dalify.formats.files.file_list import files_given
from dalify.formats.files.open_files import OpenFiles


@pytest.fixture(params=[True, False], ids=["preadv", "without"])
def has_positions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Also simulate systems without ``preadv``."""
    if not request.param:
        for module in (positions, open_files, whole_file):
            assert isinstance(module, ModuleType)
            monkeypatch.setattr(module, "HAS_PREAD", False)
        monkeypatch.delattr(os, "preadv", raising=False)
    elif not positions.HAS_PREAD:
        pytest.skip("this system has no preadv")
    return request.param


@pytest.mark.parametrize(("offset", "size"), [(0, 10), (3, 4), (0, 0), (9, 5), (10, 1), (99, 1)])
def test_existing_files_are_returned(has_positions: bool, offset: int, size: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    memory = np.zeros(size, np.uint8)
    descriptor = os.open(tmp_path / "a", OPEN_FLAGS)
    try:
        count = positions.read_at(descriptor, memory, offset)
    finally:
        os.close(descriptor)
    assert memory[:count].tobytes() == b"0123456789"[offset : offset + size]


def test_threads_share_a_descriptor(has_positions: bool, tmp_path: Path) -> None:
    contents = np.random.default_rng(0).integers(0, 256, 100_000, np.uint8)
    contents.tofile(tmp_path / "a")
    files = OpenFiles([str(tmp_path / "a")])
    wrong: list[int] = []

    def read(start: int) -> None:
        for _ in range(50):
            if not np.array_equal(files.read(0, start, 10_000), contents[start : start + 10_000]):
                wrong.append(start)

    threads = [threading.Thread(target=read, args=(start,)) for start in range(0, 40_000, 10_001)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert (
        files.read_many(np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1, np.int64)) is None
    ) != has_positions


def test_whole_files(has_positions: bool, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    assert whole_file.read_file(str(tmp_path / "a")).tobytes() == b"0123456789"
    found = files_given([str(tmp_path / "a")] * 4).read_many(np.arange(4))
    assert (found is not None) == has_positions
