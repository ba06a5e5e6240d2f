"""Measure readers of files and containers with photographs, without decoding, on one thread.

They are compared with the readers of the real DALI and the Python packages of the container formats, if installed.
After the first epoch all data are in the page cache, so the figures do not include the disk.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.common import OURS, RIVAL, Contender, Options, RunBatch, compare, library, missing_package, photo_folder
from dalify.base.optional import LazyModule
from tests.helpers.containers import (
    caffe2_record,
    caffe2_tensor,
    caffe_datum,
    example,
    write_lmdb,
    write_recordio,
    write_tfrecord,
)
from tests.operators.readers.datasets import write_tar

h5py: Any = LazyModule("h5py", "the benchmark of HDF5", "dalify[hdf5]")
pyarrow: Any = LazyModule("pyarrow", "the benchmark of Arrow", "dalify[arrow]")
pyarrow_parquet: Any = LazyModule("pyarrow.parquet", "the benchmark of Parquet", "dalify[arrow]")
zarr: Any = LazyModule("zarr", "the benchmark of Zarr", "dalify[zarr]")

BATCH_SIZE = 32
MAX_FILES = 128
PATCH = 256


# Optional packages of readers that DALI does not have.
EXTRAS = {
    "parquet": "pyarrow",
    "arrow": "pyarrow",
    "arrow, mapped": "pyarrow",
    "hdf5": "h5py",
    "hdf5, chunks": "h5py",
    "zarr, chunks": "zarr",
}
ROWS_OF_A_CHUNK = 4
# Readers of DALI that map files into memory by default. If a mapped file is truncated or cannot be read, the process
# crashes. dalify always reads, like DALI without memory maps.
MAPPED = ("file", "tfrecord", "webdataset", "mxnet", "numpy", "numpy, a patch")


def _tables(folder: Path, photos: list[bytes]) -> dict[str, dict[str, Any]]:
    """Write the containers whose optional packages are installed; return the arguments of their readers."""
    found: dict[str, dict[str, Any]] = {}
    arrays = np.stack([np.full((512, 512), number, np.float32) for number in range(len(photos) // 4)])
    if not missing_package(["pyarrow"]):
        table = pyarrow.table(
            {"image": [{"bytes": photo, "path": None} for photo in photos], "label": range(len(photos))}
        )
        pyarrow_parquet.write_table(table, folder / "a.parquet", row_group_size=32)
        with pyarrow.ipc.new_file(folder / "a.arrow", table.schema) as file:
            file.write_table(table, max_chunksize=32)
        found["parquet"] = {"paths": str(folder / "a.parquet"), "columns": ["image", "label"], "cache_bytes": 1}
        found["arrow"] = {"source": str(folder / "a.arrow"), "columns": ["image", "label"]}
        found["arrow, mapped"] = {**found["arrow"], "memory_map": True}
    if not missing_package(["h5py"]):
        with h5py.File(folder / "a.h5", "w") as file:
            file["plain"] = arrays
            file.create_dataset("chunks", data=arrays, chunks=(ROWS_OF_A_CHUNK, 512, 512))
        found["hdf5"] = {"paths": str(folder / "a.h5"), "datasets": ["plain"]}
        found["hdf5, chunks"] = {"paths": str(folder / "a.h5"), "datasets": ["chunks"], "cache_bytes": 1}
    if not missing_package(["zarr"]):
        group = zarr.open_group(str(folder / "a.zarr"), mode="w")
        group.create_array("chunks", data=arrays, chunks=(ROWS_OF_A_CHUNK, 512, 512), compressors=None)
        found["zarr, chunks"] = {"paths": str(folder / "a.zarr"), "arrays": ["chunks"], "cache_bytes": 1}
    return found


def _written(folder: Path, photos: list[bytes]) -> dict[str, dict[str, Any]]:
    """Write every container; return the arguments of its reader. Functions among them are called with the library."""
    files = [folder / f"{number:05d}.jpg" for number in range(len(photos))]
    for file, photo in zip(files, photos, strict=True):
        file.write_bytes(photo)
    records = [example({"image/encoded": photo, "image/class/label": [n]}) for n, photo in enumerate(photos)]
    write_tfrecord(folder / "a.tfrecord", records, folder / "a.tfrecord.idx")
    names = [
        (f"{n:05d}.{end}", data) for n, photo in enumerate(photos) for end, data in (("jpg", photo), ("cls", b"1"))
    ]
    write_tar(folder / "a.tar", names)
    write_recordio(folder / "a.rec", folder / "a.idx", [(photo, float(n)) for n, photo in enumerate(photos)])
    write_lmdb(folder / "caffe", [caffe_datum(photo, n, encoded=True) for n, photo in enumerate(photos)])
    write_lmdb(
        folder / "caffe2", [caffe2_record(caffe2_tensor(photo), caffe2_tensor([n])) for n, photo in enumerate(photos)]
    )
    (folder / "numpy").mkdir()
    for number in range(len(photos) // 4):
        np.save(folder / "numpy" / f"{number:05d}.npy", np.full((512, 512), number, np.float32))

    def features(lib: SimpleNamespace) -> dict[str, Any]:
        declarations = lib.tfrecord
        return {
            "image/encoded": declarations.FixedLenFeature([], declarations.string, ""),
            "image/class/label": declarations.FixedLenFeature([1], declarations.int64, -1),
        }

    return {
        "file": {"files": list(map(str, files))},
        "tfrecord": {
            "path": str(folder / "a.tfrecord"),
            "index_path": str(folder / "a.tfrecord.idx"),
            "features": features,
        },
        "webdataset": {"paths": str(folder / "a.tar"), "ext": ["jpg", "cls"]},
        "mxnet": {"path": [str(folder / "a.rec")], "index_path": [str(folder / "a.idx")]},
        "caffe": {"path": str(folder / "caffe")},
        "caffe2": {"path": str(folder / "caffe2")},
        "numpy": {"file_root": str(folder / "numpy")},
        "numpy, a patch": {"file_root": str(folder / "numpy"), "roi_start": [64, 64], "roi_shape": [PATCH, PATCH]},
    }


def _contender(name: str, root: str, reader: str, arguments: dict[str, Any]) -> Contender:
    @contextmanager
    def opened() -> Iterator[RunBatch]:
        lib = library(root)
        if reader == "tfrecord":
            lib.tfrecord = __import__(f"{root}.tfrecord", fromlist=["tfrecord"])

        @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None)
        def pipeline() -> Any:
            given = {key: value(lib) if callable(value) else value for key, value in arguments.items()}
            result = reduce(getattr, ["readers", reader.partition(",")[0]], lib.fn)(**given)
            result = list(result.values()) if isinstance(result, dict) else result
            return tuple(result) if isinstance(result, list) else result

        pipe = pipeline()
        pipe.build()
        yield lambda: len(pipe.run()[0])

    extra = "lmdb" if reader.startswith("caffe") else EXTRAS.get(reader)
    return Contender(name, opened, (root, extra) if extra else (root,))


def _own(name: str, needs: str, samples: Callable[[], Iterator[Any]]) -> Contender:
    """Return a contender that iterates over a container with its Python package; it keeps a batch, like a pipeline."""

    @contextmanager
    def opened() -> Iterator[RunBatch]:
        def endless() -> Iterator[Any]:
            while True:
                yield from samples()

        left = endless()

        def run() -> int:
            return len([next(left) for _ in range(BATCH_SIZE)])

        yield run

    return Contender(name, opened, (needs,))


def _packages(folder: Path) -> dict[str, Contender]:
    def of_webdataset() -> Iterator[Any]:
        package = __import__("webdataset")
        return iter(package.WebDataset(str(folder / "a.tar"), shardshuffle=False))

    def of_tfrecord() -> Iterator[Any]:
        package = __import__("tfrecord")
        kinds = {"image/encoded": "byte", "image/class/label": "int"}
        return iter(package.tfrecord_loader(str(folder / "a.tfrecord"), None, kinds))

    def of_lmdb() -> Iterator[Any]:
        package = __import__("lmdb")
        # A separate copy, because the package does not open a database twice in one process.
        copy = shutil.copytree(folder / "caffe", folder / "caffe_of_lmdb", dirs_exist_ok=True)
        with package.open(str(copy), readonly=True, lock=False) as environment, environment.begin() as transaction:
            for _, value in transaction.cursor():
                yield value

    def of_numpy() -> Iterator[Any]:
        return (np.load(path) for path in sorted((folder / "numpy").glob("*.npy")))

    def of_pyarrow() -> Iterator[Any]:
        file = pyarrow_parquet.ParquetFile(folder / "a.parquet")
        for batch in file.iter_batches(columns=["image", "label"], use_threads=False):
            yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)

    def of_arrow(opened: Callable[[str], Any]) -> Iterator[Any]:
        with opened(str(folder / "a.arrow")) as file:
            for batch in pyarrow.ipc.open_file(file).read_all().to_batches():
                yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)

    def of_h5py(name: str, step: int) -> Iterator[Any]:
        with h5py.File(folder / "a.h5") as file:
            for start in range(0, len(file[name]), step):
                yield from file[name][start : start + step]

    def of_zarr() -> Iterator[Any]:
        array = zarr.open_group(str(folder / "a.zarr"), mode="r")["chunks"]
        for start in range(0, array.shape[0], ROWS_OF_A_CHUNK):
            yield from array[start : start + ROWS_OF_A_CHUNK]

    def of_files() -> Iterator[Any]:
        return (np.frombuffer(path.read_bytes(), np.uint8) for path in sorted(folder.glob("*.jpg")))

    return {
        "file": _own("Path.read_bytes", "numpy", of_files),
        "webdataset": _own("webdataset", "webdataset", of_webdataset),
        "tfrecord": _own("tfrecord", "tfrecord", of_tfrecord),
        "caffe": _own("lmdb, not parsed", "lmdb", of_lmdb),
        "numpy": _own("numpy.load", "numpy", of_numpy),
        "parquet": _own("pyarrow", "pyarrow", of_pyarrow),
        "arrow": _own("pyarrow, not mapped", "pyarrow", lambda: of_arrow(pyarrow.OSFile)),
        "arrow, mapped": _own("pyarrow", "pyarrow", lambda: of_arrow(pyarrow.memory_map)),
        "hdf5": _own("h5py", "h5py", lambda: of_h5py("plain", 1)),
        "hdf5, chunks": _own("h5py, by chunks", "h5py", lambda: of_h5py("chunks", ROWS_OF_A_CHUNK)),
        "zarr, chunks": _own("zarr, by chunks", "zarr", of_zarr),
    }


def main(options: Options) -> None:
    """Time the reader of every container."""
    photos_of = photo_folder(options)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        photos = [path.read_bytes() for path in sorted(photos_of.glob("*/*.jpg"))[:MAX_FILES]]
        array_bytes = 512 * 512 * 4.0
        sizes = {"numpy, a patch": PATCH * PATCH * 4.0}
        sizes |= dict.fromkeys(("numpy", "hdf5", "hdf5, chunks", "zarr, chunks"), array_bytes)
        packages = _packages(folder)
        for reader, arguments in {**_written(folder, photos), **_tables(folder, photos)}.items():
            libraries = (("dalify", OURS),) if reader in EXTRAS else (("dalify", OURS), ("DALI", RIVAL))
            contenders = [_contender(name, root, reader, arguments) for name, root in libraries]
            if reader in MAPPED:
                contenders.append(_contender("DALI, not mapped", RIVAL, reader, {**arguments, "dont_use_mmap": True}))
            contenders += [packages[reader]] if reader in packages else []
            kilobytes = sizes.get(reader, sum(map(len, photos)) / len(photos)) / 1000
            title = f"readers.{reader}: {kilobytes:.0f} kB each"
            found = compare(title, contenders, options, unit="samples/s")
            speeds = ", ".join(
                f"{name} {turn.samples_per_second * kilobytes / 1000:.0f}" for name, turn in found.items()
            )
            print(f"MB/s: {speeds}")
