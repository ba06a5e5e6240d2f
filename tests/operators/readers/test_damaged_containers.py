"""Damaged, truncated and malicious containers raise errors and do not crash the process.

Files that used to crash the process are read in subprocesses.
"""

from __future__ import annotations

import io
import os
import random
import struct
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import fn
from dalify.base.errors import DalifyError, LimitError, ReaderError
from dalify.formats.records.tar import members
from dalify.formats.records.tfrecord import scan
from tests.operators.readers.datasets import DATASETS

pa = pytest.importorskip("pyarrow", reason="the extra dalify[arrow]")
pq = pytest.importorskip("pyarrow.parquet")
zarr = pytest.importorskip("zarr", reason="the extra dalify[zarr]")
fits = pytest.importorskip("astropy.io.fits", reason="the extra dalify[fits]")

DAMAGED = Path(__file__).with_name("damaged")
COLUMNS = ["image", "label", "boxes", "number"]


def reading(reader: str, /, *, on_error: str = "raise", limits: Any = None, **options: Any) -> dalify.Pipeline:
    pipe = dalify.Pipeline(
        batch_size=3, num_threads=2, device_id=None, prefetch_queue_depth=1, on_error=on_error, limits=limits
    )
    with pipe:
        found = getattr(fn.readers, reader)(name="Reader", **options)
        found = list(found.values()) if isinstance(found, dict) else found
        pipe.set_outputs(*(found if isinstance(found, (list, tuple)) else [found]))
    pipe.build()
    return pipe


def outcomes(make: Callable[[], dalify.Pipeline], runs: int = 3) -> list[str]:
    """Return the class of the error of each run or an empty string; errors of other classes are raised."""
    found = []
    try:
        pipe = make()
    except DalifyError as error:
        return [type(error).__name__]
    for _ in range(runs):
        try:
            for output in pipe.run():
                for sample in range(len(output)):
                    np.array(output.at(sample)).sum()
            found.append("")
        except DalifyError as error:
            found.append(type(error).__name__)
    return found


def in_a_program(program: str) -> str:
    """Return the output of a program; the test fails if a signal ends the program."""
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import *\n{program}"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


# -- Parquet and Arrow


def test_tables_that_ended_the_process() -> None:
    """Found by fuzzing: footers that contradict themselves, offsets that lead out of the data, negative lengths."""
    lines = in_a_program("""
for path in sorted(DAMAGED.iterdir()):
    if path.suffix == ".parquet":
        found = outcomes(lambda: reading("parquet", paths=[str(path)], columns=COLUMNS))
    else:
        found = outcomes(lambda: reading("arrow", source=[str(path)], columns=COLUMNS))
    print(path.name, *found)
""").splitlines()
    assert len(lines) == 6
    for line in lines:
        assert "ReaderError" in line, line


def table(count: int = 60, size: int = 20_000) -> Any:
    draw = np.random.default_rng(0)
    return pa.table(
        {
            "image": [draw.bytes(size) for _ in range(count)],
            "label": list(range(count)),
            "boxes": [[[float(n)] * 4] * (n % 3) for n in range(count)],
            "number": pa.array(np.arange(count), pa.int32()),
        }
    )


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_truncated_while_it_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    assert path.parent.is_dir()
    printed = in_a_program(f"""
path, kind = Path({str(path)!r}), {kind!r}
if kind == "parquet":
    pq.write_table(table(), path, row_group_size=6, compression="none", use_dictionary=False)
else:
    with pa.ipc.new_file(path, table().schema) as file:
        file.write_table(table(), max_chunksize=6)
options = {{"paths": [str(path)]}} if kind == "parquet" else {{"source": str(path)}}
pipe = reading(kind, columns=["image", "label"], cache_bytes=1, **options)
first = pipe.run()[1].as_array().tolist()
os.truncate(path, 300_000)
errors = 0
for _ in range(40):
    try:
        pipe.run()
    except ReaderError as error:
        errors += str(path) in str(error)
print(first, errors)
""")
    first, _, errors = printed.rpartition(" ")
    assert first == "[0, 1, 2]"
    assert int(errors) > 20


def with_damage(data: bytes, draw: random.Random, first: int = 0) -> bytes:
    damaged = bytearray(data)
    for _ in range(draw.randint(1, 6)):
        place = draw.randrange(first, len(damaged))
        kind = draw.randrange(4)
        if kind == 0:
            damaged[place] = draw.randrange(256)
        elif kind == 1:
            size = draw.choice((2, 4, 8))
            damaged[place : place + size] = (draw.choice((-1, 1 << 15, 1 << 31, 1 << 62)) & (1 << 63) - 1).to_bytes(
                8, "little"
            )[:size]
        elif kind == 2:
            damaged[place] ^= 1 << draw.randrange(8)
        else:
            del damaged[place : place + draw.randint(1, 9)]
    return bytes(damaged)


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_random_damage_of_parquet(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(12, 30), path, row_group_size=5, compression=compression)
    data, draw = path.read_bytes(), random.Random(1)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for _ in range(100):
        path.write_bytes(with_damage(data, draw, draw.choice((4, footer))))
        outcomes(lambda: reading("parquet", paths=[str(path)], columns=COLUMNS), 2)


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("compression", [None, "lz4"])
def test_random_damage_of_arrow(tmp_path: Path, compression: str | None, is_stream: bool) -> None:
    path = tmp_path / "a.arrow"
    options = pa.ipc.IpcWriteOptions(compression=compression)
    columns = table(12, 30).append_column("text", pa.array([f"text {n}" * n for n in range(12)], pa.string_view()))
    columns = columns.append_column("category", pa.array(["a", "b", "c"] * 4).dictionary_encode())
    with (pa.ipc.new_stream if is_stream else pa.ipc.new_file)(path, columns.schema, options=options) as file:
        file.write_table(columns, max_chunksize=5)
    data, draw = path.read_bytes(), random.Random(1)
    for _ in range(100):
        path.write_bytes(with_damage(data, draw))
        outcomes(lambda: reading("arrow", source=[str(path)], columns=columns.column_names), 2)


def test_a_stream_whose_dictionary_grows(tmp_path: Path) -> None:
    schema = pa.schema([("category", pa.dictionary(pa.int32(), pa.string())), ("label", pa.int64())])
    wanted = []
    with pa.ipc.new_stream(tmp_path / "a", schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as file:
        for names in (["a", "b"], ["a", "b", "long enough"], ["a", "b", "long enough", ""]):
            chosen = names[::-1]
            wanted += chosen
            column = pa.DictionaryArray.from_arrays(pa.array(range(len(names)), pa.int32())[::-1], names)
            file.write_batch(pa.record_batch([column, pa.array(range(len(names)))], schema=schema))
    pipe = reading("arrow", source=str(tmp_path / "a"), columns=["category"])
    found = [sample.tobytes().decode() for _ in range(3) for sample in map(np.array, pipe.run()[0])]
    assert found == wanted


def test_strings_in_several_buffers(tmp_path: Path) -> None:
    """Long values are in one of several buffers, short values in the column itself."""
    strings = [f"text {n} " * (n % 5) for n in range(30)]
    column = pa.concat_arrays([pa.array(strings[n : n + 7], pa.string_view()) for n in range(0, 30, 7)])
    with pa.ipc.new_file(tmp_path / "a", pa.schema([("text", pa.string_view())])) as file:
        file.write_batch(pa.record_batch({"text": column}))
    pipe = reading("arrow", source=str(tmp_path / "a"), columns=["text"])
    assert [np.array(sample).tobytes().decode() for _ in range(10) for sample in pipe.run()[0]] == strings


def test_memory_maps_give_the_same(tmp_path: Path) -> None:
    columns = table(40, 3000).append_column("text", pa.array([f"text {n}" * n for n in range(40)], pa.string_view()))
    with pa.ipc.new_file(tmp_path / "a", columns.schema) as file:
        file.write_table(columns, max_chunksize=7)
    found = []
    for memory_map in (False, True):
        pipe = reading("arrow", source=str(tmp_path / "a"), columns=columns.column_names, memory_map=memory_map)
        found.append([np.array(sample).tolist() for _ in range(13) for output in pipe.run() for sample in output])
    assert found[0] == found[1]


def test_categories_are_not_expanded(tmp_path: Path) -> None:
    """One value of 8 MiB and 100,000 rows that refer to it: 800 GB if each were a copy."""
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int8)), pa.array([bytes(8 << 20)]))
    with pa.ipc.new_file(tmp_path / "a", pa.schema([("x", column.type)])) as file:
        file.write_batch(pa.record_batch({"x": column}))
    assert reading("arrow", source=str(tmp_path / "a"), columns=["x"]).run()[0].at(2).shape == (8 << 20,)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_the_ratio_of_compression_is_bounded(tmp_path: Path, kind: str) -> None:
    zeros = pa.table({"x": pa.array(np.zeros(8 << 20, np.int64))})
    path = str(tmp_path / "a")
    if kind == "parquet":
        pq.write_table(zeros, path, row_group_size=8 << 20)
    else:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(path, zeros.schema, options=options) as file:
            file.write_table(zeros)
    options = {"paths": [path]} if kind == "parquet" else {"source": path}
    assert outcomes(lambda: reading(kind, columns=["x"], **options), 1) == [""]
    pipe = reading(kind, columns=["x"], limits={"max_sample_bytes": 1 << 20}, **options)
    with pytest.raises(LimitError, match="max_sample_bytes"):
        pipe.run()


# -- tar and TFRecord


def test_archives_with_many_long_names(tmp_path: Path) -> None:
    draw = random.Random(0)
    for archive_format in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        path = tmp_path / str(archive_format)
        longest = 90 if archive_format == tarfile.USTAR_FORMAT else 4000
        with tarfile.open(path, "w", format=archive_format) as archive:
            for number in range(5000):
                name = f"{number:05d}" + "n" * (draw.randrange(longest) if number % 7 == 0 else 0)
                member = tarfile.TarInfo(name)
                member.size = draw.choice((0, 1, 511, 512, 3000, 100_000 if number % 500 == 0 else 10))
                archive.addfile(member, io.BytesIO(bytes(member.size)))
        with tarfile.open(path) as archive:
            wanted = [(member.name.encode(), member.offset_data, member.size) for member in archive]
        assert [tuple(member) for member in members(str(path))] == wanted


def test_endless_names(tmp_path: Path) -> None:
    """Long names without members take bounded memory and time."""
    name = tarfile.TarInfo("././@LongLink")
    name.type, name.size = tarfile.GNUTYPE_LONGNAME, 200_000
    block = name.tobuf(tarfile.GNU_FORMAT) + b"n" * 200_000
    block += bytes(-len(block) % 512)
    (tmp_path / "a").write_bytes(block * 30 + bytes(1024))
    assert list(members(str(tmp_path / "a"))) == []
    name.size = 300_000
    (tmp_path / "b").write_bytes(name.tobuf(tarfile.GNU_FORMAT) + b"n" * 300_000 + bytes(1024))
    with pytest.raises(ReaderError, match="damaged at byte 0"):
        list(members(str(tmp_path / "b")))


@pytest.mark.parametrize("kind", ["tar", "tfrecord"])
def test_truncated_while_it_is_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    path = tmp_path / "a"
    if kind == "tar":
        with tarfile.open(path, "w") as archive:
            for number in range(30):
                member = tarfile.TarInfo(str(number))
                member.size = 100_000
                archive.addfile(member, io.BytesIO(bytes(member.size)))
    else:
        path.write_bytes((struct.pack("<Q", 100_000) + bytes(100_008)) * 30)
    original = os.preadv
    reads = []

    def truncating(descriptor: int, buffers: Any, offset: int) -> int:
        reads.append(offset)
        if len(reads) == 5:
            os.truncate(path, 200_000)
        return original(descriptor, buffers, offset)

    monkeypatch.setattr(os, "preadv", truncating)
    with pytest.raises(ReaderError, match="was truncated"):
        list(members(str(path))) if kind == "tar" else scan(str(path))


@pytest.mark.parametrize("reader", ["webdataset", "tfrecord", "mxnet", "caffe", "caffe2"])
def test_random_damage_of_records(tmp_path: Path, reader: str) -> None:
    if reader.startswith("caffe"):
        pytest.importorskip("lmdb", reason="it writes the databases")
    given = DATASETS[f"readers.{reader}"](tmp_path, 9)
    options = {name: value(dalify) if callable(value) else value for name, value in given.items()}
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file() and "lock" not in path.name)
    whole, draw = {path: path.read_bytes() for path in files}, random.Random(2)
    for _ in range(80):
        path = draw.choice(files)
        path.write_bytes(with_damage(whole[path], draw))
        outcomes(lambda: reading(reader, **options), 2)
        path.write_bytes(whole[path])
    assert outcomes(lambda: reading(reader, **options), 2) == ["", ""]


# -- Zarr and FITS


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([12, 10**12], "a row of the array 'x'.*max_sample_bytes"),
        ([10**12, 5], "max_declared_samples|chunks"),
        ([10**9, 5], "more than 16,777,216 chunks"),
        ([12, 1_000_000], "consists of 200,000 chunks"),
        ([-1, 5], "x|cannot"),
    ],
)
def test_zarr_that_declares_too_much(tmp_path: Path, version: int, shape: list[int], message: str) -> None:
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=version)
    group.create_array("x", data=np.arange(60).reshape(12, 5), chunks=(4, 5))
    path = tmp_path / "a.zarr" / "x" / (".zarray" if version == 2 else "zarr.json")
    text = path.read_text()
    start, stop = text.index('"shape"'), text.index("]", text.index('"shape"')) + 1
    path.write_text(f'{text[:start]}"shape": {shape}{text[stop:]}')
    with pytest.raises(DalifyError, match=message):
        reading("zarr", paths=[str(tmp_path / "a.zarr")], arrays=["x"])


@pytest.mark.parametrize("version", [2, 3])
def test_chunks_of_blosc_with_wrong_headers(tmp_path: Path, version: int) -> None:
    """The library believes the header and reads beyond the chunk."""
    codec = {2: "numcodecs", 3: "zarr.codecs"}[version]
    compressor = pytest.importorskip(codec).Blosc() if version == 2 else pytest.importorskip(codec).BloscCodec()
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=version)
    group.create_array("x", data=np.arange(600).reshape(12, 50), chunks=(4, 50), compressors=compressor)
    names = {".zarray", ".zgroup", ".zattrs", "zarr.json"}
    chunks = [path for path in (tmp_path / "a.zarr" / "x").rglob("*") if path.is_file() and path.name not in names]
    chunk = min(chunks)
    whole = chunk.read_bytes()
    for place, value in ((12, 1 << 30), (12, 10), (4, 1 << 31), (8, 0), (8, 1 << 30)):
        damaged = bytearray(whole)
        struct.pack_into("<I", damaged, place, value)
        chunk.write_bytes(damaged)
        pipe = reading("zarr", paths=[str(tmp_path / "a.zarr")], arrays=["x"])
        for _ in range(2):  # of chunks of four rows
            with pytest.raises(DalifyError):
                pipe.run()
        assert pipe.run()[0].at(0).tolist() == list(range(300, 350))
    chunk.write_bytes(whole[:10])
    with pytest.raises(ReaderError):
        reading("zarr", paths=[str(tmp_path / "a.zarr")], arrays=["x"]).run()
    chunk.write_bytes(whole)
    assert reading("zarr", paths=[str(tmp_path / "a.zarr")], arrays=["x"]).run()[0].at(1)[0] == 50


@pytest.mark.parametrize("version", [2, 3])
def test_chunks_of_strings_that_declare_too_many(tmp_path: Path, version: int) -> None:
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=version)
    array = group.create_array("x", shape=(6,), chunks=(6,), dtype=str, compressors=None)
    array[:] = [f"text {n}" for n in range(6)]
    chunk = next(path for path in (tmp_path / "a.zarr" / "x").rglob("0") if path.is_file())
    chunk.write_bytes(struct.pack("<I", (1 << 32) - 1) + chunk.read_bytes()[4:])
    with pytest.raises(ReaderError, match="too short for the declared number"):
        reading("zarr", paths=[str(tmp_path / "a.zarr")], arrays=["x"]).run()


@pytest.mark.parametrize(("card", "value"), [("NAXIS", 10**9), ("NAXIS1", 10**12), ("NAXIS", -1), ("BITPIX", 7)])
def test_fits_headers_that_declare_too_much(tmp_path: Path, card: str, value: int) -> None:
    path = tmp_path / "a.fits"
    fits.PrimaryHDU(np.zeros((4, 5), np.int16)).writeto(path)
    data = path.read_bytes()
    start = data.index(card.ljust(8).encode() + b"=")
    path.write_bytes(data[:start] + f"{card:8}= {value:20}".encode() + data[start + 30 :])
    pipe = dalify.Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.experimental.readers.fits(files=[str(path)], dtypes=[dalify.types.INT16]))
    with pytest.raises(DalifyError, match=r"a\.fits"):
        pipe.run()


# -- files that are none, or others


def test_paths_that_are_not_files(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(b"good")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    names = ["good", "folder", "pipe", "loop", "absent", "/dev/null", "x" * 300]
    for name, message in zip(
        names[1:], ["a folder", "a pipe", "symbolic links", "No such file", "device", "name too long"], strict=True
    ):
        pipe = reading("file", files=["good", name, "good"], file_root=str(tmp_path))
        with pytest.raises(ReaderError, match=f"(?i){message}"):
            pipe.run()
    skipping = reading("file", files=["good", *names], file_root=str(tmp_path), on_error="skip")
    for _ in range(4):
        assert all(bytes(np.array(sample)) == b"good" for sample in skipping.run()[0])


def test_files_that_vanish_while_they_are_read(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(6)]
    for path in paths:
        path.write_bytes(b"good")
    pipe = reading("file", files=[str(path) for path in paths], on_error="skip")
    assert len(pipe.run()[0]) == 3
    paths[4].unlink()
    paths[5].unlink()
    os.mkfifo(paths[5])
    for _ in range(3):
        assert all(bytes(np.array(sample)) == b"good" for sample in pipe.run()[0])
    assert {Path(sample.source).name for sample in pipe.bad_samples()} == {"4", "5"}
