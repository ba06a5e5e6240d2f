"""Reading one file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import psutil
import pytest

from dalify.base.errors import ReaderError
from dalify.formats.files import whole_file
from dalify.formats.files.paths import Paths
from dalify.formats.files.whole_file import read_file, read_files


@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_complete_contents(tmp_path: Path, size: int) -> None:
    contents = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    path = tmp_path / "file"
    path.write_bytes(contents.tobytes())
    result = read_file(str(path))
    assert result.dtype == np.uint8
    np.testing.assert_array_equal(result, contents)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReaderError, match=r"nowhere.jpg.*No such file"):
        read_file(str(tmp_path / "nowhere.jpg"))
    with pytest.raises(ReaderError, match="it is a folder"):
        read_file(str(tmp_path))


def _written(folder: Path, sizes: list[int]) -> list[bytes]:
    random = np.random.default_rng(1)
    paths = [folder / f"é{number}" for number in range(len(sizes))]
    for path, size in zip(paths, sizes, strict=True):
        path.write_bytes(random.bytes(size))
    return [os.fsencode(path) for path in paths]


@pytest.mark.parametrize("typical_bytes", [0, 1, 500, 70_000, 1 << 40])
@pytest.mark.parametrize(
    "sizes", [[1], [1, 64, 65, 3], [500] * 20, [100_000, 7, 3_000_000, 5_000_000, 20], [1_500_000] * 4], ids=str
)
def test_many_complete_files(sizes: list[int], typical_bytes: int, tmp_path: Path) -> None:
    paths = _written(tmp_path, sizes)
    found = read_files(Paths.of(paths), typical_bytes)
    assert found is not None
    found = found.samples
    assert [contents.tobytes() for contents in found] == [Path(os.fsdecode(path)).read_bytes() for path in paths]
    assert all(contents.ctypes.data % 8 == 0 for contents in found)
    for contents in found:  # each in separate memory
        contents[:] = 1
    assert [contents.sum() for contents in found] == sizes


def test_a_kept_file_holds_at_most_one_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_file, "_BLOCK_BYTES", 4 << 20)
    found = read_files(
        Paths.of(_written(tmp_path, [10, 3_000_000, 20, 6_000_000, 2_000_000, 2_000_000, 2_000_000])), 1_000_000
    )
    assert found is not None
    found = found.samples
    owners = [contents if contents.base is None else contents.base for contents in found]
    assert all(owner.nbytes <= max(4 << 20, contents.nbytes) for owner, contents in zip(owners, found, strict=True))
    assert owners[0].nbytes == 10


def test_special_files_are_read_separately(tmp_path: Path) -> None:
    paths = _written(tmp_path, [10, 20, 30])
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    open_before = psutil.Process().num_fds()
    for bad in ("absent", "empty", "folder"):
        for typical_bytes in (0, 100):
            assert read_files(Paths.of([*paths, os.fsencode(tmp_path / bad), paths[0]]), typical_bytes) is None
    assert psutil.Process().num_fds() <= open_before


def test_large_files_are_read_separately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_file, "_MAX_BYTES", 1000)
    assert read_files(Paths.of(_written(tmp_path, [10, 1001, 10])), 10) is None
    assert read_files(Paths.of(_written(tmp_path, [10, 1000, 10])), 10) is not None
