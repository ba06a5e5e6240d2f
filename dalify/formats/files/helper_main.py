"""The program of helper processes: reads files with libraries that damaged files can crash or hang.

``helper_process`` runs this file as a script. It does not import dalify, so that it starts quickly, and does not depend
on where dalify is.
"""

from __future__ import annotations

import glob
import importlib
import os
import pickle
import select
import signal
import struct
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

SIZE = struct.Struct("<Q")  # of a pickled message; arrays may follow it
RECEIVED = b"\1"  # sent when a request has been read, before it is executed
_IDLE_S = 10.0
_PARENT_CHECK_S = 1.0
_MAX_OPEN = 32
_MIN_ROW_BYTES = 1 << 14
_MAX_PARTS = 1 << 18
_ESTIMATED_BYTES = 1 << 16  # size of a string or list of variable length
_FITS_BLOCK, _CARD = 2880, 80
_MAX_AXES = 999  # also the maximum number of columns of a table
_COUNTS = ("BITPIX", "NAXIS", "ZNAXIS", "TFIELDS", "PCOUNT", "GCOUNT")
_MEMORY_BYTES = 1 << 31  # limit of the memory of a call, in addition to its result


class RefusedError(Exception):
    """A valid file that cannot be used.

    Args:
        kind: ``reader``, ``dtype`` or ``argument``: the class of the error shown to the user.
        message: one sentence.
        hint: how to fix it.
    """

    def __init__(self, kind: str, message: str, hint: str = "") -> None:
        super().__init__(kind, message, hint)


_files: OrderedDict[str, Any] = OrderedDict()  # an LRU cache, because `Recent` cannot be imported


def _h5py() -> Any:
    return importlib.import_module("h5py")


def _close(path: str) -> None:
    file = _files.pop(path, None)
    if file is not None:
        file.close()


def _file(path: str) -> Any:
    file = _files.pop(path, None) or _h5py().File(path, "r")
    _files[path] = file
    while len(_files) > _MAX_OPEN:
        _close(next(iter(_files)))
    return file


def describe_hdf5(path: str, names: Sequence[str], size_of_file: int) -> list[tuple[Any, ...]]:
    """Return shape, dtype, bytes per row, rows per chunk and parts of each dataset.

    Args:
        path: path of the file.
        names: names of the datasets.
        size_of_file: size of the file in bytes.

    Returns:
        a tuple for each dataset; parts are offsets and number of rows of a part, or None if HDF5 must read the dataset.
    """
    _close(path)  # the file may have been replaced
    return [_describe(_dataset(path, name), path, size_of_file) for name in names]


def _dataset(path: str, name: str) -> Any:
    file, kind = _file(path), _h5py().Dataset
    try:
        found = file[name]
    except KeyError:
        found = None
    if not isinstance(found, kind):
        known: list[str] = []
        file.visititems(lambda name, item: known.append(name) if isinstance(item, kind) else None)
        raise RefusedError("argument", name, "\n".join(known))
    _check_location(found, path)
    return found


def _check_location(dataset: Any, path: str, root: Path | None = None, seen: set[str] | None = None) -> None:
    """Reject a dataset stored in files outside the folder of the file that refers to them.

    Args:
        dataset: a dataset of the file, or the target of a link in it.
        path: path of the file.
        root: the folder; None for the folder of the file.
        seen: files whose datasets were checked.
    """
    folder = Path(path).absolute().parent
    root, seen = root or folder, set() if seen is None else seen
    others = [dataset.file.filename] if dataset.file.filename != path else []
    others += [os.fsdecode(name) for name, _, _ in dataset.external or ()]
    sources = [source.file_name for source in dataset.virtual_sources()] if dataset.is_virtual else []
    for other in [*others, *(source for source in sources if source != ".")]:
        # By name, because symbolic links were created by the user.
        place = Path(os.path.normpath(folder / other))
        if not place.is_relative_to(root):
            raise RefusedError(
                "reader",
                f"the dataset {dataset.name.strip('/')!r} of {path!r} is in {other!r}, outside the folder of the "
                "file that refers to it",
                "Put both files into the same folder.",
            )
    for source in dict.fromkeys(sources):  # these may refer to further files
        # %b is a placeholder for file numbers.
        name = glob.escape(path if source == "." else os.path.normpath(folder / source)).replace("%b", "*")
        for place in glob.iglob(name.replace("%%", "%")):  # noqa: PTH207 -- the pattern has the folder in it
            if place not in seen:
                seen.add(place)
                _check_file(place, root, seen)


def _check_file(path: str, root: Path, seen: set[str]) -> None:
    """Reject a file with a dataset stored outside a folder."""

    def check(_name: str, item: Any) -> None:
        if isinstance(item, _h5py().Dataset):
            _check_location(item, path, root, seen)

    with suppress(OSError), _h5py().File(path, "r") as file:  # a file that is not HDF5 contains no datasets
        file.visititems(check)


def _describe(dataset: Any, path: str, size_of_file: int) -> tuple[Any, ...]:
    name = dataset.name.strip("/")
    dtype = dataset.dtype
    if not dataset.ndim:
        raise RefusedError("reader", f"the dataset {name!r} of {path!r} is a scalar: it has no rows.")
    if dtype.kind not in "biuf" and not (dataset.ndim == 1 and _is_bytes_or_list(dtype)):
        raise RefusedError(
            "dtype",
            f"the dataset {name!r} of {path!r} has dtype {dtype} and {dataset.ndim} dimension"
            f"{'s' if dataset.ndim != 1 else ''}, which cannot be converted to arrays.",
            "Supported are numbers, and in one dimension strings, bytes, and lists of numbers.",
        )
    has_variable_length = dtype.kind == "O"
    row_bytes = _ESTIMATED_BYTES if has_variable_length else _row_bytes(dataset)
    parts = _parts(dataset, size_of_file)
    chunk_rows = 1 if parts is not None or not dataset.chunks else dataset.chunks[0]
    return dataset.shape, "O" if has_variable_length else dtype.str, row_bytes, chunk_rows, parts


def _row_bytes(dataset: Any) -> int:
    size = dataset.dtype.itemsize
    for extent in dataset.shape[1:]:
        size *= extent
    return size


def _is_bytes_or_list(dtype: np.dtype[Any]) -> bool:
    h5py = _h5py()
    if h5py.check_string_dtype(dtype) is not None:
        return True
    items = h5py.check_vlen_dtype(dtype)
    return (dtype.kind == "V" and dtype.names is None) if items is None else np.dtype(items).kind in "biuf"


def _parts(dataset: Any, size_of_file: int) -> tuple[list[int], int] | None:
    """Return offsets and number of rows of the parts of a dataset with its in-memory layout; None for others."""
    is_plain = dataset.dtype.kind in "biuf" and dataset.external is None and not dataset.is_virtual
    is_here = dataset.file.filename in _files
    if not is_plain or not is_here or dataset.file.userblock_size or not dataset.size:
        return None
    row_bytes = _row_bytes(dataset)
    if dataset.chunks is None:
        offset = dataset.id.get_offset()
        offsets, part_rows = [] if offset is None else [offset], dataset.shape[0]
    else:
        part_rows, *others = dataset.chunks
        count = -(-dataset.shape[0] // part_rows)
        # For small rows, a cached chunk is faster than reading the file.
        is_large = row_bytes >= _MIN_ROW_BYTES and count <= _MAX_PARTS and hasattr(dataset.id, "chunk_iter")
        if not is_large or tuple(others) != dataset.shape[1:] or dataset.id.get_create_plist().get_nfilters():
            return None
        offsets = [-1] * count  # chunks that were never written consist of the fill value

        def store_offset(chunk: Any) -> None:
            if chunk.size == part_rows * row_bytes and chunk.chunk_offset[0] < dataset.shape[0]:
                offsets[chunk.chunk_offset[0] // part_rows] = chunk.byte_offset

        dataset.id.chunk_iter(store_offset)
    # Offsets are not trusted; HDF5 reports parts outside the file.
    is_there = bool(offsets) and min(offsets) >= 0 and max(offsets) + part_rows * row_bytes <= size_of_file
    return (offsets, part_rows) if is_there else None


def read_hdf5(path: str, name: str, start: int, stop: int, shape: Sequence[int]) -> Any:
    """Return rows of a dataset: an array in native byte order, or a list of strings or lists.

    Args:
        path: path of the file.
        name: name of the dataset.
        start: first row.
        stop: one past the last row.
        shape: shape of the dataset when it was described.
    """
    rows = _unchanged_dataset(path, name, shape)[start:stop]
    if rows.dtype.kind == "O":
        return list(rows)
    native = rows.dtype.newbyteorder("=") if rows.dtype.kind in "iuf" else rows.dtype
    return np.ascontiguousarray(rows, np.dtype(native.str))


def read_hdf5_rows(path: str, name: str, rows: Sequence[int], shape: Sequence[int]) -> list[Any]:
    """Return rows of a dataset in any order; see ``read_hdf5``."""
    dataset = _unchanged_dataset(path, name, shape)
    return [dataset[row] for row in rows]


def _unchanged_dataset(path: str, name: str, shape: Sequence[int]) -> Any:
    dataset = _dataset(path, name)
    if dataset.shape != tuple(shape):
        raise RefusedError("reader", f"the file {path!r} was changed after it was opened.")
    return dataset


def labels_of_hdf5(path: str, names: Sequence[str]) -> Any:
    """Return the first dataset with one of these names that is a vector of integers, or None."""
    for name in names:
        found = _file(path).get(name)
        if isinstance(found, _h5py().Dataset) and found.ndim == 1 and found.dtype.kind in "iu":
            _check_location(found, path)
            return np.ascontiguousarray(found[:], found.dtype.newbyteorder("="))
    return None


def read_fits(path: str, numbers: Sequence[int], max_bytes: int, max_axes: int) -> list[np.ndarray]:
    """Return images of a file, C-contiguous, in native byte order, scaled as the file specifies.

    Args:
        path: path of the file.
        numbers: numbers of the header-data units, from 1.
        max_bytes: maximum size of an image.
        max_axes: maximum number of axes of an image.
    """
    fits = importlib.import_module("astropy.io.fits")
    # astropy does not close files that it opened itself if they are damaged.
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        _check_headers(file, path, max(numbers))
        with fits.open(file, mode="readonly", memmap=False, lazy_load_hdus=True) as units:
            return [_image(units, path, number, size, max_bytes, max_axes) for number in numbers]


def _check_headers(file: Any, path: str, count: int) -> None:
    """Reject headers that declare more axes or columns than possible; astropy would list all of them.

    Args:
        file: open file at position 0; the position is restored.
        path: path of the file.
        count: number of header-data units to check.
    """
    for _ in range(count):
        found = {"BITPIX": 8, "NAXIS": 0, "PCOUNT": 0, "GCOUNT": 1}
        is_at_end = False
        while not is_at_end:
            block = file.read(_FITS_BLOCK)
            if len(block) < _FITS_BLOCK:
                is_at_end = True
                found["NAXIS"] = _MAX_AXES  # there is nothing after it
            for start in range(0, len(block), _CARD):
                name, text = block[start : start + 8].decode("latin-1").rstrip(), block[start + 10 : start + 30]
                is_at_end = is_at_end or name == "END"
                if name.startswith(_COUNTS) and text.strip().lstrip(b"+-").isdigit():
                    found[name] = int(text)
                    if name in ("NAXIS", "ZNAXIS", "TFIELDS") and found[name] > _MAX_AXES:
                        raise RefusedError("reader", f"the FITS file {path!r} is damaged: {name} is {found[name]}.")
        elements = 1 if found["NAXIS"] > 0 else 0
        for axis in range(1, found["NAXIS"] + 1):
            elements *= found.get(f"NAXIS{axis}", 0)
        size = abs(found["BITPIX"]) // 8 * found["GCOUNT"] * (found["PCOUNT"] + elements)
        place = file.tell() + -(-size // _FITS_BLOCK) * _FITS_BLOCK
        if not file.tell() <= place < 1 << 60:
            break
        file.seek(place)
    file.seek(0)


def _image(units: Any, path: str, number: int, size: int, max_bytes: int, max_axes: int) -> np.ndarray:
    try:
        unit = units[number - 1]
    except IndexError:
        raise RefusedError(
            "reader", f"{path!r} has {len(units)} header-data units; unit {number} does not exist."
        ) from None
    if not getattr(unit, "is_image", False):
        raise RefusedError("reader", f"{path!r}, unit {number}: it is not an image.")
    place = unit.fileinfo() or {}
    if place.get("datLoc", 0) + place.get("datSpan", 0) > size:
        raise RefusedError("reader", f"the FITS file {path!r} is truncated: unit {number} is incomplete.")
    shape = tuple(unit.shape)
    if len(shape) > max_axes:
        raise RefusedError("dimensions", f"{path!r}, unit {number}", str(len(shape)))
    needed = abs(int(unit.header.get("BITPIX", 8))) // 8
    for extent in shape:
        needed *= max(int(extent), 1)
    if needed > max_bytes:
        raise RefusedError("limit", f"{path!r}, unit {number}", str(needed))
    data = unit.data
    if data is None or data.ndim == 0:
        raise RefusedError("reader", f"{path!r}, unit {number}: it has no data.")
    data = np.asarray(data)
    return np.ascontiguousarray(data, data.dtype.newbyteorder("="))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (describe_hdf5, read_hdf5, read_hdf5_rows, labels_of_hdf5, read_fits)
}


def _read_exactly(descriptor: int, size: int) -> bytes | None:
    """Read exactly ``size`` bytes; None at the end of the stream."""
    found = bytearray()
    while len(found) < size:
        part = os.read(descriptor, min(size - len(found), 1 << 20))
        if not part:
            return None
        found += part
    return bytes(found)


def _read_message(descriptor: int) -> Any:
    """Return the next message, or None at the end of the stream."""
    size = _read_exactly(descriptor, SIZE.size)
    body = None if size is None else _read_exactly(descriptor, SIZE.unpack(size)[0])
    return None if body is None else pickle.loads(body)


def _send(descriptor: int, header: Any, arrays: Sequence[np.ndarray]) -> None:
    pickled = pickle.dumps(header, pickle.HIGHEST_PROTOCOL)
    for part in (SIZE.pack(len(pickled)), pickled, *arrays):
        left = part.reshape(-1).view(np.uint8).data if isinstance(part, np.ndarray) else memoryview(part)
        while left:
            left = left[os.write(descriptor, left) :]


def _respond(function: str, arguments: Sequence[Any]) -> tuple[Any, list[np.ndarray]]:
    """Return the header of a response, and its arrays."""
    try:
        found = FUNCTIONS[function](*arguments)
    except RefusedError as error:
        return ("refused", *error.args), []
    except ImportError as error:
        return ("missing", str(error)), []
    except BaseException as error:  # libraries raise any exception for damaged files
        _close(str(arguments[0]))
        return ("failed", f"{type(error).__name__}: {error}"[:400]), []
    if isinstance(found, np.ndarray):
        return ("array", [(found.dtype.str, found.shape)]), [found]
    if isinstance(found, list) and found and all(isinstance(item, np.ndarray) for item in found):
        return ("arrays", [(item.dtype.str, item.shape) for item in found]), list(map(np.ascontiguousarray, found))
    return ("value", found), []


def _import_for(function: str) -> None:
    """Import the libraries of a function, before its limits apply."""
    try:
        importlib.import_module("astropy.io.fits" if function == read_fits.__name__ else "h5py")
    except ImportError:
        return  # the function reports it


def _limit_memory(result_bytes: int) -> None:
    """Limit the memory of a call relative to the size of its result."""
    try:
        resource = importlib.import_module("resource")
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        wanted = used + _MEMORY_BYTES + 4 * result_bytes
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard < 0 else min(wanted, hard), hard))
    except (ImportError, OSError, ValueError):
        return  # not supported on this system


def _main(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # libraries write to these
        os.dup2(null, standard)
    paths, modules = _read_message(incoming)
    sys.path[:] = paths
    # Names of other files are then relative to the file that refers to them instead of the working directory. libhdf5
    # reads this when it is loaded, by h5py or by one of the modules.
    os.environ["HDF5_EXTFILE_PREFIX"] = os.environ["HDF5_VDS_PREFIX"] = "${ORIGIN}"
    for name in modules:
        importlib.import_module(name)
    idle_s = 0.0
    while idle_s < _IDLE_S:
        if os.name != "nt" and not select.select([incoming], [], [], _PARENT_CHECK_S)[0]:
            if os.getppid() != parent:
                return
            idle_s += _PARENT_CHECK_S
            continue
        idle_s = 0.0
        request = _read_message(incoming)
        if request is None:
            return
        os.write(outgoing, RECEIVED)
        function, arguments, processor_s, result_bytes = request
        _import_for(function)
        _limit_memory(result_bytes)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, processor_s)  # SIGPROF ends a call that hangs
        response = _respond(function, arguments)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, 0)
        _send(outgoing, *response)


if __name__ == "__main__":
    _main(int(sys.argv[1]))
