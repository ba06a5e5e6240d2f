"""fn.io.file.read against the files themselves."""

from __future__ import annotations

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import DTypeError, ReaderError
from dalify.executor import engine
from tests.helpers.one_operator import run_dalify


def as_path(text: str, padding: int = 0) -> np.ndarray:
    return np.frombuffer(text.encode() + bytes(padding), np.uint8)


def test_contents(tmp_path):
    contents = [b"", b"a", bytes(range(256)) * 999]
    paths = [tmp_path / f"fil\u00e9 {number}.bin" for number in range(len(contents))]
    for path, data in zip(paths, contents, strict=True):
        path.write_bytes(data)
    for prefix, padding in (("", 0), ("", 7), ("file://", 0)):
        got = run_dalify("io.file.read", [as_path(prefix + str(path), padding) for path in paths], use_o_direct=True)
        assert [sample.tobytes() for sample in got] == contents


@pytest.mark.parametrize("sizes", [[3, 9000, 70000, 1], [9000] * 4, [5] * 4, [100000, 1]])
def test_files_are_read_together(sizes, tmp_path, monkeypatch):
    monkeypatch.setattr("dalify.operators.io.file.read.read_file", None)  # reads a single file
    contents = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    paths = [tmp_path / str(number) for number in range(len(sizes))]
    for path, data in zip(paths, contents, strict=True):
        path.write_bytes(data)

    @pipeline_def(batch_size=len(sizes), num_threads=1, device_id=None)
    def pipeline():
        files = fn.io.file.read(fn.external_source(lambda: [as_path(str(path)) for path in paths]))
        return files, files + 1

    monkeypatch.setattr(engine, "chunk_bounds", lambda size, *_others, **_named: [(0, size)])
    pipe = pipeline()
    batches = [pipe.run() for _ in range(3)]
    for files, more in batches:  # their memory is not used again
        for n, data in enumerate(contents):
            assert files.at(n).tobytes() == data
            np.testing.assert_array_equal(more.at(n), np.frombuffer(data, np.uint8).astype(np.int32) + 1)


@pytest.mark.parametrize("path", ["", "/no/such/file", "a\0b"])
def test_no_file(path, tmp_path):
    good = tmp_path / "good"
    good.write_bytes(b"x")
    with pytest.raises(ReaderError, match="file") as caught:
        run_dalify("io.file.read", [as_path(str(good)), as_path(path, 1)])
    assert caught.value.sample == 1


def test_no_path():
    with pytest.raises(DTypeError, match="frombuffer"):
        run_dalify("io.file.read", [np.zeros((2, 3), np.uint8)])
