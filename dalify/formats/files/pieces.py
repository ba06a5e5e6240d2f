"""Reads many ranges of files in one call: a compiled loop over ``pread`` instead of a Python call for each.

Files are read and never mapped, also without ``dont_use_mmap``. So a disk error or a truncated file is an error of one
sample and does not end the process (SIGBUS), and consumers may write to samples. Reading a photo of 69 kB takes 4 to
7 µs; copying it from a map would save 1 to 2 µs, which the system call for checking the range takes. A view that may be
written to needs its own map, which takes as long as reading unless many samples are read in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base import limits
from dalify.base.array_at import copy_bytes
from dalify.base.compiling import njit
from dalify.data.batch import Batch
from dalify.data.dtypes import DALIDataType
from dalify.formats.files.compiled_files import close_file, file_size, open_file, read_part
from dalify.formats.files.memory import file_memory
from dalify.formats.files.paths import Paths

_MAX_BYTES = 1 << 26
# Reading a small gap between neighbors, such as the header of the next one, is faster than another call.
_MAX_GAP_BYTES = 1 << 11
# Pieces start at a multiple of this, so that elements of any type are aligned.
ALIGNMENT_BYTES = 64
# Smaller pieces, such as labels, are copied, so that they do not keep the memory of images alive.
SMALL_BYTES = 1 << 10


class Pieces:
    """Memory for consecutive pieces of files.

    The results of a reader can be created before the pieces are read, because afterwards, the code that creates them is
    no longer in the CPU cache.

    Args:
        starts: first byte of each piece in the memory, a multiple of the size of its elements, int64 ``[N]``, N > 0.
        stops: one past the last byte of each, ascending.
        size_bytes: size of the memory, a multiple of 64.
        has_one_file: whether all are pieces of the same file.

    Attributes:
        data: all pieces, uint8 ``[size_bytes]``.
    """

    __slots__ = ("data", "has_one_file", "starts", "stops")

    def __init__(
        self, starts: NDArray[np.int64], stops: NDArray[np.int64], size_bytes: int, *, has_one_file: bool
    ) -> None:
        self.starts = starts
        self.stops = stops
        self.has_one_file = has_one_file
        self.data = file_memory(size_bytes)

    @classmethod
    def of(
        cls, files: NDArray[np.int64], offsets: NDArray[np.int64], sizes: NDArray[np.int64], *, has_bytes: bool = False
    ) -> Pieces | None:
        """Return memory for pieces of files; None if a number is invalid, or they are large. All are ``[N]``.

        Args:
            files: indices of the files.
            offsets: offsets of the first bytes.
            sizes: numbers of bytes.
            has_bytes: whether elements are bytes; neighbors are then read in one call wherever they start.
        """
        count = len(sizes)
        if not count:
            return None
        starts, stops = np.empty((2, count), np.int64)
        largest = largest_piece(count)
        alignment = 1 if has_bytes else ALIGNMENT_BYTES
        size_bytes, has_one_file = lay_out(files, offsets, sizes, largest, alignment, starts, stops)
        return None if size_bytes < 0 else cls(starts, stops, size_bytes, has_one_file=has_one_file)

    def read(self, descriptors: NDArray[np.int32], offsets: NDArray[np.int64], sizes: NDArray[np.int64]) -> bool:
        """Read the pieces; return False if one cannot be read completely. The GIL is released during the read.

        Args:
            descriptors: descriptor of the file of each piece, ``[N]``; ``[1]`` if it is the same.
            offsets: see ``of``.
            sizes: see ``of``.
        """
        return _read(descriptors, offsets, sizes, self.starts, self.data)

    def copy(self, addresses: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        """Copy the pieces from memory that the caller keeps alive. Releases the GIL."""
        _copy(addresses, sizes, self.starts, self.data)

    def samples(self) -> Batch:
        """Return the pieces, uint8 ``[n]`` each."""
        return samples_in(self.data, self.starts, self.stops)

    def large_samples(self) -> Batch | None:
        """Return `samples` without copies, also before the pieces are read; None if there is a small piece."""
        return large_samples_in(self.data, self.starts, self.stops)


def largest_piece(count: int) -> int:
    """Return the maximum size of each of some pieces: reading more than 64 MiB in one call is not faster."""
    return min(_MAX_BYTES // count, limits.current().max_sample_bytes)


def large_samples_in(data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Batch | None:
    """Return slices of memory, uint8 ``[n]`` each; None if one is small."""
    sizes = stops - starts
    # After a compiled call, builtin functions are in the CPU cache, functions of NumPy are not.
    if min(sizes.tolist()) <= SMALL_BYTES:
        return None
    return Batch(dtype=DALIDataType.UINT8, ragged=(data, starts, sizes[:, None]))


def samples_in(data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Batch:
    """Return slices of memory, uint8 ``[n]`` each; small slices are copied."""
    found = large_samples_in(data, starts, stops)
    if found is not None:
        return found
    sizes = stops - starts
    copied = copy_pieces(starts + data.ctypes.data, sizes) if max(sizes.tolist()) <= SMALL_BYTES else None
    if copied is not None:
        return Batch(dtype=DALIDataType.UINT8, ragged=(copied.data, copied.starts, sizes[:, None]))
    slices = [
        data[start:stop] if stop - start > SMALL_BYTES else data[start:stop].copy()
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
    ]
    return Batch(samples=slices)


# This function and the next keep the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def copy_rows(data: Any, starts: Any, rows: Any) -> None:
    """Copy slices of memory that have the same small size to ``rows``, uint8 ``[N, size]``."""
    for row in range(starts.size):
        for place in range(rows.shape[1]):
            rows[row, place] = data[starts[row] + place]


@njit(cache=True)
def lay_out(
    files: Any, offsets: Any, sizes: Any, largest: int, alignment: int, starts: Any, stops: Any
) -> tuple[int, bool]:
    """Lay out the pieces of ``Pieces.of``; neighbors in a file keep their distance if it is a multiple of `alignment`.

    Return the total size, -1 if a number is invalid, and whether there is one file.
    """
    place, has_one_file = 0, True
    for piece in range(sizes.size):
        if offsets[piece] < 0 or not 0 <= sizes[piece] <= largest:
            return -1, False
        step = -1
        if piece and files[piece] == files[piece - 1]:
            step = offsets[piece] - offsets[piece - 1]
        elif piece:
            has_one_file = False
        if step % alignment == 0 and piece and sizes[piece - 1] <= step <= sizes[piece - 1] + _MAX_GAP_BYTES:
            place += step
        else:
            if piece:
                place = (stops[piece - 1] + (ALIGNMENT_BYTES - 1)) & -ALIGNMENT_BYTES
            if alignment == 1:
                # The system copies a fifth faster if both addresses have the same offset in a cache line.
                place += offsets[piece] % ALIGNMENT_BYTES
        starts[piece], stops[piece] = place, place + sizes[piece]
    return (stops[sizes.size - 1] + (ALIGNMENT_BYTES - 1)) & -ALIGNMENT_BYTES, has_one_file


@njit(nogil=True, cache=True)
def _read(descriptors: Any, offsets: Any, sizes: Any, starts: Any, out: Any) -> bool:
    """Fill ``out`` from each start on; return False at the first error or early end of file."""
    address = out.ctypes.data
    step = 1 if descriptors.size > 1 else 0
    first = 0
    for piece in range(offsets.size):
        following = piece + 1
        if (
            following < offsets.size
            and descriptors[following * step] == descriptors[first * step]
            and offsets[following] - offsets[first] == starts[following] - starts[first]
        ):
            continue  # read in one call with the next
        size = starts[piece] + sizes[piece] - starts[first]
        if not read_part(descriptors[first * step], offsets[first], size, address + starts[first]):
            return False
        first = following
    return True


@njit(nogil=True, cache=True)
def _copy(addresses: Any, sizes: Any, starts: Any, out: Any) -> None:
    target = out.ctypes.data
    for piece in range(addresses.size):
        copy_bytes(target + starts[piece], addresses[piece], sizes[piece])


def copy_pieces(addresses: NDArray[np.int64], sizes: NDArray[np.int64]) -> Pieces | None:
    """Copy pieces of memory that the caller keeps alive. All arguments are ``[N]``. Releases the GIL.

    Args:
        addresses: addresses of the first bytes.
        sizes: numbers of bytes.

    Returns:
        the pieces; None if they are large.
    """
    pieces = Pieces.of(addresses, addresses, sizes)  # with different files, there are no neighbors
    if pieces is not None:
        pieces.copy(addresses, sizes)
    return pieces


@njit(nogil=True, cache=True)
def _fill(text: Any, paths: Any, flags: int, starts: Any, sizes: Any, out: Any) -> tuple[int, int, int]:
    """Read files; return their number, the size of the next one, and the minimum size."""
    place, smallest = 0, out.size
    for file in range(starts.size):
        descriptor = open_file(np.uintp(text.ctypes.data + paths[file]), flags)
        if descriptor < 0:
            return file, -1, smallest
        size = file_size(descriptor)
        fits = size <= out.size - place
        is_read = fits and size > 0 and read_part(descriptor, 0, size, out.ctypes.data + place)
        close_file(descriptor)
        if not is_read:
            return file, -1 if fits else size, smallest
        starts[file], sizes[file, 0] = place, size
        if size < smallest:
            smallest = size
        place = (place + size + (ALIGNMENT_BYTES - 1)) & -ALIGNMENT_BYTES
    return starts.size, 0, smallest


def fill_with_files(paths: Paths, flags: int, memory: NDArray[np.uint8]) -> tuple[Batch | None, int]:
    """Read whole files while there is space, one open at a time. Releases the GIL.

    Args:
        paths: paths of the files.
        flags: flags for ``open`` of the C library.
        memory: output, uint8 ``[n]``.

    Returns:
        contents of the first files, uint8 ``[bytes]`` each, or None; and the size of the next one: 0 if all files were
        read, -1 if it is empty or cannot be read.
    """
    starts, sizes = np.empty(len(paths), np.int64), np.empty((len(paths), 1), np.int64)
    count, wanted_bytes, smallest = _fill(paths.text, paths.starts, flags, starts, sizes, memory)
    if not count:
        return None, wanted_bytes
    if count < len(starts):
        starts, sizes = starts[:count], sizes[:count]
    if smallest <= SMALL_BYTES:
        return samples_in(memory, starts, starts + sizes[:, 0]), wanted_bytes
    return Batch(dtype=DALIDataType.UINT8, ragged=(memory, starts, sizes)), wanted_bytes
