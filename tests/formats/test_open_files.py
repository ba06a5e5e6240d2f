"""More files than a process may have open."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ReaderError
from dalify.formats.files.open_files import OpenFiles
from dalify.formats.files.positions import Holding
from dalify.formats.files.whole_file import read_file
from tests.operators.readers.datasets import write_tar

resource = pytest.importorskip("resource")

COUNT = 300


@pytest.fixture
def few_files() -> Iterator[None]:
    """Limit this process to 100 more open files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    # These are the lowest free descriptors, which are not consecutive if files were closed in another order.
    descriptors = [os.open(os.devnull, os.O_RDONLY) for _ in range(100)]
    for descriptor in descriptors:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(descriptors) + 1, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def _written(folder: Path) -> list[str]:
    paths = [folder / str(number) for number in range(COUNT)]
    for number, path in enumerate(paths):
        path.write_bytes(b"%06d" % number)
    return list(map(str, paths))


@pytest.mark.usefixtures("few_files")
def test_idle_files_are_closed_for_others(tmp_path: Path) -> None:
    paths = _written(tmp_path)
    several = [OpenFiles(paths) for _ in range(3)]
    for number in range(COUNT):
        for files in several:
            assert files.read(number, 0, 6).tobytes() == b"%06d" % number
        assert read_file(paths[number]).tobytes() == b"%06d" % number
    numbers = np.arange(COUNT - 20, COUNT)
    pieces = several[0].read_many(numbers, np.ones(20, np.int64), np.full(20, 5))
    assert pieces is not None
    assert [pieces.data[start : start + 5].tobytes() for start in pieces.starts.tolist()] == [
        b"%05d" % number for number in numbers
    ]


@pytest.mark.usefixtures("few_files")
def test_threads_that_hold_many_files_together(tmp_path: Path) -> None:
    """Each thread reads from more files than half of those that the process may open."""
    paths = _written(tmp_path)
    files = OpenFiles(paths)
    failures: list[BaseException] = []

    def read(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(20):
            numbers = random.permutation(COUNT)[:60]
            pieces = files.read_many(numbers, np.zeros(60, np.int64), np.full(60, 6))
            if pieces is None:
                found = [files.read(number, 0, 6).tobytes() for number in numbers.tolist()]
            else:
                found = [pieces.data[start : start + 6].tobytes() for start in pieces.starts.tolist()]
            if found != [b"%06d" % number for number in numbers]:
                failures.append(AssertionError(found))

    def attempt(seed: int) -> None:
        try:
            read(seed)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=attempt, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.usefixtures("few_files")
def test_a_thread_waits_for_files_that_others_hold(tmp_path: Path) -> None:
    path = _written(tmp_path)[0]
    descriptors: list[int] = []
    with suppress(OSError):
        while True:
            descriptors.append(os.open(path, os.O_RDONLY))
    is_held = threading.Event()

    def hold() -> None:
        with Holding(len(descriptors)):
            is_held.set()
            time.sleep(0.05)
            for descriptor in descriptors:
                os.close(descriptor)

    other = threading.Thread(target=hold)
    other.start()
    is_held.wait()
    found = read_file(path).tobytes()
    other.join()
    assert found == b"000000"


@pytest.fixture
def many_open() -> Iterator[None]:
    """Files that the program has open."""
    descriptors = [os.open(os.devnull, os.O_RDONLY) for _ in range(200)]
    yield
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.mark.parametrize("fixtures", [["few_files"], ["many_open", "few_files"]])
def test_idle_files_leave_some_for_the_program(
    fixtures: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    for fixture in fixtures:
        request.getfixturevalue(fixture)
    paths = _written(tmp_path)
    several = [OpenFiles(paths), *(OpenFiles([path]) for path in paths)]
    for files in several:
        for place in range(len(files)):
            files.read(place, 0, 6)
            # os.open closes no idle files of readers when no descriptor is left: it fails.
            others = [os.open(os.devnull, os.O_RDONLY) for _ in range(30)]
            for descriptor in others:
                os.close(descriptor)


@pytest.mark.usefixtures("few_files")
def test_too_many_files_that_are_not_idle(tmp_path: Path) -> None:
    path = _written(tmp_path)[0]
    descriptors: list[int] = []
    try:
        with suppress(OSError):
            while True:
                descriptors.append(os.open(path, os.O_RDONLY))
        with pytest.raises(ReaderError, match=r"cannot open the file .*0': Too many open files") as raised:
            read_file(path)
        assert "ulimit" in raised.value.hint
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


@pytest.mark.parametrize("change", ["same size", "other size", "in place", "none"])
def test_files_that_are_replaced(change: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"before")
    os.utime(path, ns=(0, 0))
    files = OpenFiles([str(path)])
    assert files.read(0, 0, 6).tobytes() == b"before"
    if change in ("same size", "other size"):
        path.unlink()
    if change != "none":
        path.write_bytes(b"afterwards" if change == "other size" else b"after!")
    if change != "in place":
        assert files.read(0, 0, 6).tobytes() == b"before"  # the file is still open
    files.close_idle()
    if change == "none":
        assert files.read(0, 0, 6).tobytes() == b"before"
        return
    for _ in range(2):
        with pytest.raises(ReaderError, match="changed or replaced after"):
            files.read(0, 0, 6)
    assert files.read_many(np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1, np.int64)) is None
    assert OpenFiles([str(path)]).read(0, 0, 5).tobytes() == b"after"


@pytest.mark.parametrize("kind", ["webdataset", "parquet", "arrow", "arrow, mapped"])
def test_readers_of_many_files(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    paths = [str(tmp_path / str(number)) for number in range(COUNT)]
    if kind == "webdataset":
        for number, path in enumerate(paths):
            write_tar(Path(path), [(f"{number}.txt", b"%04d" % number)])
        arguments: dict[str, Any] = {"paths": paths, "ext": ["txt"]}
    else:
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        for number, path in enumerate(paths):
            table = pyarrow.table({"x": [b"%04d" % number]})
            if kind == "parquet":
                parquet.write_table(table, path)
                continue
            with pyarrow.ipc.new_file(path, table.schema) as file:
                file.write_table(table)
        arguments = {"columns": ["x"], "paths" if kind == "parquet" else "source": paths}
    if kind == "arrow, mapped":
        arguments["memory_map"] = True
    reader = getattr(fn.readers, kind.partition(",")[0])

    def graph() -> Any:
        return reader(**arguments)

    request.getfixturevalue("few_files")
    pipes = [pipeline_def(batch_size=50, num_threads=1, device_id=None)(graph)() for _ in range(2)]
    for epoch in range(2):
        for batch in range(COUNT // 50):
            for pipe in pipes:
                found: Any = pipe.run()[0]
                expected = [b"%04d" % number for number in range(50 * batch, 50 * batch + 50)]
                assert [np.asarray(sample).tobytes() for sample in found] == expected, epoch
    for pipe in pipes:
        pipe.close()
