"""Zarr chunks: limits apply to declared and decoded sizes, damage is an error, pickled objects are not loaded."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import fn
from dalify.base import limits as base_limits
from dalify.base.errors import DalifyError, LimitError, ReaderError
from dalify.base.limits import Limits
from dalify.formats.arrays.zarr_codecs import _zstd_bytes, decoding

zarr = pytest.importorskip("zarr", reason="the extra dalify[zarr]")
numcodecs = pytest.importorskip("numcodecs")

CODECS = ("gzip", "zlib", "bz2", "lzma", "zstd", "lz4", "blosc")


def reading(folder: Path, **options: Any) -> dalify.Pipeline:
    pipe = dalify.Pipeline(batch_size=3, num_threads=2, device_id=None, prefetch_queue_depth=1, **options)
    with pipe:
        rows: Any = fn.readers.zarr(paths=[str(folder)], arrays=["x"], name="Reader")
        pipe.set_outputs(rows)
    pipe.build()
    return pipe


def rows_of(folder: Path, **options: Any) -> np.ndarray:
    output: Any = reading(folder, **options).run()[0]
    return np.stack([np.array(output.at(place)) for place in range(3)])


VALUES = np.arange(300).reshape(6, 50)


def zarr_with(path: Path, codec: dict[str, Any], values: Any, *, rows: int = 6) -> Path:
    """Write an array of one chunk with a codec of numcodecs; return the chunk."""
    group = zarr.open_group(str(path), mode="w", zarr_format=2)
    compressor = numcodecs.get_codec(codec)
    array = group.create_array("x", shape=(rows, 50), chunks=(rows, 50), dtype="i8", compressors=compressor)
    array[:] = values
    return path / "x" / "0.0"


@pytest.mark.parametrize("codec", CODECS)
def test_chunks_of_zarr_that_expand_beyond_the_limit(
    tmp_path: Path, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few kilobytes of one number: the limits of the pipeline apply although other threads decode them."""
    chunk = zarr_with(tmp_path / "a.zarr", {"id": codec}, VALUES)
    whole = chunk.read_bytes()
    bomb = zarr_with(tmp_path / "b.zarr", {"id": codec}, 7, rows=20_000).read_bytes()
    assert len(bomb) < 1 << 20
    folder = tmp_path / "a.zarr"
    for on_error in ("raise", "replace"):
        chunk.write_bytes(bomb)
        pipe = reading(folder, on_error=on_error, limits={"max_sample_bytes": 1 << 20})
        if on_error == "raise":
            with pytest.raises(LimitError, match="max_sample_bytes"):
                pipe.run()
        else:
            output: Any = pipe.run()[0]
            assert not np.stack([np.array(output.at(place)) for place in range(3)]).any()
            assert "LimitError" in pipe.bad_samples()[0].error
    chunk.write_bytes(whole)
    for limits in ({"max_sample_bytes": 1 << 20}, None):
        np.testing.assert_array_equal(rows_of(folder, limits=limits), VALUES[:3])
    # They do not apply to data that the program decodes itself.
    monkeypatch.setattr(base_limits, "_of_process", Limits(max_sample_bytes=1 << 20))
    assert len(memoryview(numcodecs.get_codec({"id": codec}).decode(bomb)).cast("B")) == 20_000 * 400


@pytest.mark.parametrize("codec", CODECS)
def test_chunks_of_zarr_that_are_truncated_or_damaged(tmp_path: Path, codec: str) -> None:
    chunk = zarr_with(tmp_path / "a.zarr", {"id": codec}, VALUES)
    whole = chunk.read_bytes()
    folder = tmp_path / "a.zarr"
    for length in (len(whole) // 2, 5, 1, 0):
        chunk.write_bytes(whole[:length])
        with pytest.raises(DalifyError):
            reading(folder).run()
    chunk.write_bytes(bytes(20) + whole[20:])
    with pytest.raises(DalifyError):
        reading(folder).run()


@pytest.mark.parametrize("codec", ["gzip", "bz2", "lzma"])
def test_chunks_of_zarr_of_several_streams(tmp_path: Path, codec: str) -> None:
    """As written by bgzip and pbzip2."""
    chunk = zarr_with(tmp_path / "a.zarr", {"id": codec}, VALUES)
    data = np.arange(300, dtype="i8").tobytes()
    compress = {"gzip": gzip, "bz2": bz2, "lzma": lzma}[codec].compress
    chunk.write_bytes(b"".join(compress(data[start : start + 700]) for start in range(0, len(data), 700)) + bytes(4))
    np.testing.assert_array_equal(rows_of(tmp_path / "a.zarr"), VALUES[:3])


def test_pickled_objects_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if numcodecs is configured to load them, or is an old version that always does."""
    pickles = pytest.importorskip("numcodecs.pickles")
    monkeypatch.setattr(pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    data = pickle.dumps([1, 2])
    with decoding(), pytest.raises(ReaderError, match="never loaded"):
        pickles.Pickle().decode(data)
    assert pickles.Pickle().decode(data) == [1, 2]


def test_frames_of_zstandard() -> None:
    """The size that they declare, or the maximum size of their blocks, in two versions of the format."""
    zstd = pytest.importorskip("numcodecs.zstd")
    for size in (0, 1, 255, 256, 300, 65_791, 65_792, 1 << 20):
        frame = bytes(zstd.compress(bytes(size), 3))
        assert _zstd_bytes(memoryview(frame)) == size
    # Of unknown size: a raw block of 3 bytes, one byte repeated 1000 times, and the last one, compressed.
    blocks = (3 << 3).to_bytes(3, "little") + b"abc" + (1000 << 3 | 2).to_bytes(3, "little") + b"x"
    frame = b"\x28\xb5\x2f\xfd\x00\x58" + blocks + (2 << 3 | 4 | 1).to_bytes(3, "little") + b"??"
    assert _zstd_bytes(memoryview(frame)) == 3 + 1000 + (1 << 17)
    for length in range(len(frame)):
        assert _zstd_bytes(memoryview(frame[:length])) <= 3 + 1000 + (1 << 17)
