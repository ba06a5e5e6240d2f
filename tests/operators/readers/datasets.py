"""Small datasets of every container, and runs of a reader here and in the real DALI."""

from __future__ import annotations

import functools
import io
import json
import tarfile
import warnings
import wave
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dalify
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

h5py: Any = LazyModule("h5py", "writing HDF5", "dalify[hdf5]")
zarr: Any = LazyModule("zarr", "writing Zarr", "dalify[zarr]")
pyarrow: Any = LazyModule("pyarrow", "writing Arrow data", "dalify[arrow]")
pyarrow_ipc: Any = LazyModule("pyarrow.ipc", "writing Arrow data", "dalify[arrow]")
pyarrow_parquet: Any = LazyModule("pyarrow.parquet", "writing Parquet", "dalify[arrow]")

Batches = list[list[list[np.ndarray]]]
"""``[batch][output][sample]``."""


def write_tar(path: Path, files: Sequence[tuple[str, bytes]], form: int = tarfile.GNU_FORMAT) -> None:
    """Write an archive with Python's `tarfile`."""
    with tarfile.open(path, "w", format=form) as archive:
        for name, contents in files:
            member = tarfile.TarInfo(name)
            member.size = len(contents)
            archive.addfile(member, io.BytesIO(contents))


def run_reader(
    package: Any, name: str, batches: int, batch_size: int = 3, threads: int = 2, **arguments: Any
) -> tuple[list[str], Batches, dict[str, Any]]:
    """Run a reader of dalify or of the real DALI.

    Returns:
        the layouts, the batches, and the result of ``reader_meta``.
    """
    pipe = package.Pipeline(batch_size=batch_size, num_threads=threads, device_id=None, prefetch_queue_depth=1, seed=1)
    with pipe, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        given = {key: value(package) if callable(value) else value for key, value in arguments.items()}
        result = functools.reduce(getattr, name.split("."), package.fn)(name="reader", **given)
        if isinstance(result, dict):
            result = list(result.values())
        pipe.set_outputs(*(result if isinstance(result, (list, tuple)) else [result]))
    pipe.build()
    found: Batches = []
    layouts: list[str] = []
    for _ in range(batches):
        outputs = pipe.run()
        layouts = [output.layout() for output in outputs]
        found.append([[np.array(output.at(index)) for index in range(len(output))] for output in outputs])
    meta = dict(pipe.reader_meta("reader"))
    if package is dalify:
        pipe.close()
    return layouts, found, meta


def _payload(number: int) -> bytes:
    return bytes([number]) * (number % 4 + 1)


def _file(folder: Path, count: int) -> dict[str, Any]:
    for number in range(count):
        (folder / f"{number:03d}.bin").write_bytes(_payload(number))
    return {"files": [str(folder / f"{number:03d}.bin") for number in range(count)]}


def _tfrecord(folder: Path, count: int) -> dict[str, Any]:
    halves = [range(count // 2), range(count // 2, count)]
    paths = [folder / "0.tfrecord", folder / "1.tfrecord"]
    for path, numbers in zip(paths, halves, strict=True):
        records = [example({"image": _payload(n), "label": [n], "box": [n / 2] * (n % 3)}) for n in numbers]
        write_tfrecord(path, records, path.with_suffix(".idx"))

    def features(package: Any) -> dict[str, Any]:
        declarations = _module(package, "tfrecord")
        return {
            "image": declarations.FixedLenFeature([], declarations.string, ""),
            "label": declarations.FixedLenFeature([1], declarations.int64, -1),
            "box": declarations.VarLenFeature(declarations.float32, 0.0),
        }

    return {
        "path": list(map(str, paths)),
        "index_path": [str(path.with_suffix(".idx")) for path in paths],
        "features": features,
    }


def _module(package: Any, name: str) -> Any:
    return __import__(f"{package.__name__}.{name}", fromlist=[name])


def _webdataset(folder: Path, count: int) -> dict[str, Any]:
    paths = [folder / "0.tar", folder / "1.tar"]
    for path, numbers in zip(paths, (range(count // 3), range(count // 3, count)), strict=True):
        files = [
            (f"d/{number:03d}.{extension}", contents)
            for number in numbers
            for extension, contents in (("jpg", _payload(number)), ("cls", np.int32(number).tobytes()))
        ]
        write_tar(path, files)
    return {
        "paths": list(map(str, paths)),
        "ext": ["jpg", "cls"],
        "dtypes": lambda package: [package.types.UINT8, package.types.INT32],
    }


def _mxnet(folder: Path, count: int) -> dict[str, Any]:
    items = [(_payload(n), float(n) if n % 3 else [n / 4, n / 2]) for n in range(count)]
    write_recordio(folder / "a.rec", folder / "a.idx", items)
    return {"path": [str(folder / "a.rec")], "index_path": [str(folder / "a.idx")]}


def _caffe(folder: Path, count: int) -> dict[str, Any]:
    write_lmdb(folder / "lmdb", [caffe_datum(_payload(n), n - 2, encoded=True) for n in range(count)])
    return {"path": str(folder / "lmdb")}


def _caffe2(folder: Path, count: int) -> dict[str, Any]:
    records = [
        caffe2_record(
            caffe2_tensor(_payload(n)),
            caffe2_tensor([n]),
            caffe2_tensor([n / 2] * (n % 3 + 1)),
            caffe2_tensor([n, n + 1, n + 2, n + 3]),
        )
        for n in range(count)
    ]
    write_lmdb(folder / "lmdb", records)
    return {"path": str(folder / "lmdb"), "additional_inputs": 1, "bbox": True}


def _numpy(folder: Path, count: int) -> dict[str, Any]:
    for number in range(count):
        array = np.arange(12, dtype=np.float32).reshape(3, 4) + number
        np.save(folder / f"{number:03d}.npy", array if number % 2 else np.asfortranarray(array))
    return {"file_root": str(folder)}


def _coco(folder: Path, count: int) -> dict[str, Any]:
    random = np.random.default_rng(3)
    for number in range(count):
        (folder / f"{number}.jpg").write_bytes(_payload(number))
    annotations = []
    for number in range(count):
        for _ in range(number % 4):
            x, y, w, h = random.uniform(0, 20, 4).round(2).tolist()
            triangle = [x, y, x + w, y, x, y + h]
            annotations.append(
                {
                    "id": len(annotations),
                    "image_id": number * 7,
                    "category_id": [3, 90, 17][int(x) % 3],
                    "bbox": [x, y, w, h],
                    "iscrowd": 0,
                    "segmentation": [triangle, [value / 2 for value in triangle]],
                }
            )
    document = {
        "images": [{"id": n * 7, "file_name": f"{n}.jpg", "width": 50 + n, "height": 40} for n in range(count)][::-1],
        "annotations": annotations,
        "categories": [{"id": 90, "name": "a"}, {"id": 3, "name": "b"}, {"id": 17, "name": "c"}],
    }
    (folder / "annotations.json").write_text(json.dumps(document))
    return {
        "file_root": str(folder),
        "annotations_file": str(folder / "annotations.json"),
        "polygon_masks": True,
        "image_ids": True,
    }


def _fits(folder: Path, count: int) -> dict[str, Any]:
    """Written without a library: a header of cards of 80 characters, blocks of 2880 bytes, and the data, big endian."""
    for number in range(count):
        write_fits(folder / f"{number:03d}.fits", [None, (np.arange(12).reshape(3, 4) + number).astype(np.int16)])
    return {"file_root": str(folder), "dtypes": lambda package: package.types.INT16}


def write_fits(path: Path, units: Sequence[np.ndarray | None], **cards: float) -> None:
    """Write images of int16, int32 or floats; None is a unit without data; ``cards`` go into every header."""
    data = b""
    for number, array in enumerate(units):
        bits = 8 if array is None else array.dtype.itemsize * (-8 if array.dtype.kind == "f" else 8)
        extents = [] if array is None else list(array.shape[::-1])
        values: dict[str, Any] = {"XTENSION": "'IMAGE   '"} if number else {"SIMPLE": "T"}
        values |= {"BITPIX": bits, "NAXIS": len(extents)}
        values |= {f"NAXIS{axis}": extent for axis, extent in enumerate(extents, 1)}
        values |= {"PCOUNT": 0, "GCOUNT": 1} if number else {"EXTEND": "T"}
        text = "".join(f"{key:8}= {value!s:>20}".ljust(80) for key, value in {**values, **cards}.items())
        head = f"{text}{'END':80}".encode()
        body = b"" if array is None else array.astype(array.dtype.newbyteorder(">")).tobytes()
        data += head + b" " * (-len(head) % 2880) + body + bytes(-len(body) % 2880)
    path.write_bytes(data)


def _nemo_asr(folder: Path, count: int) -> dict[str, Any]:
    lines = []
    for number in range(count):
        path = folder / f"{number}.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1 + number % 2)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes((np.arange(40 * (1 + number % 2)) * 100 + number).astype("<i2").tobytes())
        lines.append(json.dumps({"audio_filepath": str(path), "text": f"words {number}", "duration": 0.004}))
    (folder / "manifest.json").write_text("\n".join(lines) + "\n")
    return {
        "manifest_filepaths": [str(folder / "manifest.json")],
        "read_idxs": True,
        "dtype": lambda package: package.types.INT16,
    }


def _arrow_table(count: int) -> Any:
    """Return images as Hugging Face keeps them, labels, boxes and matrices."""
    return pyarrow.table(
        {
            "image": pyarrow.array([{"bytes": _payload(n), "path": None} for n in range(count)]),
            "label": pyarrow.array([n % 3 for n in range(count)], pyarrow.int64()),
            "boxes": pyarrow.array(
                [[[n, k] for k in range(n % 3)] for n in range(count)], pyarrow.list_(pyarrow.list_(pyarrow.float32()))
            ),
            "number": pyarrow.array(range(count), pyarrow.int32()),
        }
    )


def _parquet(folder: Path, count: int) -> dict[str, Any]:
    table = _arrow_table(count)
    paths = [folder / "0.parquet", folder / "1.parquet"]
    for path, part in zip(paths, (table[: count // 3], table[count // 3 :]), strict=True):
        pyarrow_parquet.write_table(part, path, row_group_size=4)
    return {"paths": list(map(str, paths)), "columns": ["image", "label", "boxes", "number"], "initial_fill": 5}


def _arrow(folder: Path, count: int) -> dict[str, Any]:
    """Write a file, a compressed file and a stream."""
    table = _arrow_table(count)
    parts = [table[: count // 3], table[count // 3 : count // 2], table[count // 2 :]]
    paths = [folder / f"{number}.arrow" for number in range(3)]
    for number, (path, part) in enumerate(zip(paths, parts, strict=True)):
        options = pyarrow_ipc.IpcWriteOptions(compression="zstd" if number == 1 else None)
        writer = pyarrow_ipc.new_stream if number == 2 else pyarrow_ipc.new_file
        with writer(path, table.schema, options=options) as file:
            file.write_table(part, max_chunksize=2)
    return {"source": list(map(str, paths)), "columns": ["image", "label", "boxes", "number"]}


def _hdf5(folder: Path, count: int) -> dict[str, Any]:
    """Write compressed chunks, plain data, strings, and lists of any length."""
    paths = [folder / "0.h5", folder / "1.h5"]
    for path, numbers in zip(paths, (range(count // 3), range(count // 3, count)), strict=True):
        with h5py.File(path, "w") as file:
            arrays = np.stack([np.arange(6, dtype=">f4").reshape(2, 3) + n for n in numbers])
            file.create_dataset("a/chunked", data=arrays, chunks=(min(2, len(arrays)), 2, 3), compression="gzip")
            file["plain"] = arrays
            file["label"] = np.array(numbers, np.int16)
            encoded = file.create_dataset("encoded", (len(arrays),), h5py.vlen_dtype(np.uint8))
            for place, number in enumerate(numbers):
                encoded[place] = np.frombuffer(_payload(number), np.uint8)
            file["text"] = [f"row {number}" for number in numbers]
    return {"paths": list(map(str, paths)), "datasets": ["a/chunked", "plain", "label", "encoded", "text"]}


def _zarr(folder: Path, count: int) -> dict[str, Any]:
    paths = [folder / "0.zarr", folder / "1.zarr"]
    for path, numbers in zip(paths, (range(count // 3), range(count // 3, count)), strict=True):
        group = zarr.open_group(str(path), mode="w")
        arrays = np.stack([np.arange(6, dtype=np.float32).reshape(2, 3) + n for n in numbers])
        group.create_array("a/chunked", data=arrays, chunks=(2, 2, 3))
        group.create_array("rows", data=arrays.astype(np.int64), chunks=(1, 2, 3))
        group.create_array("label", data=np.array(numbers, np.int16))
    return {"paths": list(map(str, paths)), "arrays": ["a/chunked", "rows", "label"]}


DATASETS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "experimental.readers.fits": _fits,
    "readers.arrow": _arrow,
    "readers.caffe": _caffe,
    "readers.caffe2": _caffe2,
    "readers.coco": _coco,
    "readers.file": _file,
    "readers.hdf5": _hdf5,
    "readers.mxnet": _mxnet,
    "readers.nemo_asr": _nemo_asr,
    "readers.numpy": _numpy,
    "readers.parquet": _parquet,
    "readers.tfrecord": _tfrecord,
    "readers.webdataset": _webdataset,
    "readers.zarr": _zarr,
}
"""By reader: writes ``count`` entries into an empty folder and returns the arguments that read them.

Arguments that are functions get the package, dalify or the real one.
"""
