"""Pieces of files, many in one call: one compiled loop over ``pread`` instead of a call of Python for each.

Files are read, not mapped, whatever ``dont_use_mmap`` says: an error of the disk, or a file that is cut off, is an
error of one sample and not the end of the process (SIGBUS), and what consumers write reaches neither the file nor a
later epoch. A copy out of a map would save 3 µs of the 7 µs that a photograph of 69 kB takes; asking the system for
each piece whether a map of it can be touched without harm takes as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base import limits
from dalify.base.compiling import njit
from dalify.formats.compiled_files import close_file, copy_memory, file_size, open_file, read_part
from dalify.formats.memory import file_memory

__all__ = ["Pieces", "copy_pieces", "fill_with_files", "read_pieces", "samples_in"]

_MOST_BYTES = 1 << 26
# What lies between neighbours, such as the header of the next, costs less than another call.
_MOST_BETWEEN = 1 << 11
# Pieces begin at a multiple of this, so that their elements are aligned whatever their type.
_ALIGNMENT_BYTES = 64
# What is small is copied, so that a label does not hold on to pictures.
_SMALL_BYTES = 1 << 10


class Pieces:
    """Memory for pieces of files, one behind the other.

    Args:
        sizes: of the pieces, bytes, ``[N]``, N > 0.
        starts: where they are to begin, multiples of 64, ``[N]``; the next after each where None.

    Attributes:
        data: all together, uint8 ``[n]``, ``n`` a multiple of 64.
        starts: first byte of each piece in ``data``, multiples of 64, int64 ``[N]``.
        stops: one past the last byte of each.
    """

    __slots__ = ("data", "starts", "stops")

    def __init__(self, sizes: NDArray[np.int64], starts: NDArray[np.int64] | None = None) -> None:
        if starts is None:
            starts = np.cumsum((sizes + (_ALIGNMENT_BYTES - 1)) & -_ALIGNMENT_BYTES)
            starts[0], starts[1:] = 0, starts[:-1].copy()
        self.starts = starts
        self.stops = starts + sizes
        self.data = file_memory((int(self.stops[-1]) + (_ALIGNMENT_BYTES - 1)) & -_ALIGNMENT_BYTES)

    def samples(self) -> list[NDArray[np.uint8]]:
        """Return each piece, uint8 ``[n]``."""
        return samples_in(self.data, self.starts, self.stops)

    @staticmethod
    def are_few(sizes: NDArray[np.int64]) -> bool:
        """Tell whether there are pieces, of sizes that can be, of 64 MiB together at most: above, nothing is gained."""
        if not len(sizes):
            return False
        largest = min(_MOST_BYTES // len(sizes), limits.current().max_sample_bytes)
        return bool(sizes.min() >= 0) and bool(sizes.max() <= largest)


def samples_in(data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> list[NDArray[np.uint8]]:
    """Return parts of memory, ``[N]`` of uint8 ``[n]``; what is small is copied."""
    return [
        data[start:stop] if stop - start > _SMALL_BYTES else data[start:stop].copy()
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
    ]


@njit(nogil=True, cache=True)
def _lay_out(descriptors: Any, offsets: Any, sizes: Any, starts: Any) -> None:
    """Find a place for each piece; neighbours in a file stay as far apart as they are there."""
    starts[0] = 0
    for piece in range(1, sizes.size):
        step = offsets[piece] - offsets[piece - 1]
        is_neighbour = descriptors[piece] == descriptors[piece - 1] and step % _ALIGNMENT_BYTES == 0
        if not is_neighbour or not sizes[piece - 1] <= step <= sizes[piece - 1] + _MOST_BETWEEN:
            step = (sizes[piece - 1] + (_ALIGNMENT_BYTES - 1)) & -_ALIGNMENT_BYTES
        starts[piece] = starts[piece - 1] + step


@njit(nogil=True, cache=True)
def _read(descriptors: Any, offsets: Any, sizes: Any, starts: Any, out: Any) -> bool:
    """Fill ``out`` from each start on; False at the first error or early end."""
    address = out.ctypes.data
    first = 0
    for piece in range(offsets.size):
        following = piece + 1
        if (
            following < offsets.size
            and descriptors[following] == descriptors[first]
            and offsets[following] - offsets[first] == starts[following] - starts[first]
        ):
            continue  # read in one go with the next
        size = starts[piece] + sizes[piece] - starts[first]
        if not read_part(descriptors[first], offsets[first], size, address + starts[first]):
            return False
        first = following
    return True


def read_pieces(descriptors: NDArray[np.int32], offsets: NDArray[np.int64], sizes: NDArray[np.int64]) -> Pieces | None:
    """Read pieces of open files, ``[N]`` each. The GIL is free while data come.

    Args:
        descriptors: of the files.
        offsets: of the first bytes.
        sizes: numbers of bytes.

    Returns:
        the pieces; None where one could not be read as a whole, where a number cannot be, and where they are large.
    """
    if not Pieces.are_few(sizes) or offsets.min() < 0:
        return None
    starts = np.empty_like(sizes)
    _lay_out(descriptors, offsets, sizes, starts)
    pieces = Pieces(sizes, starts)
    return pieces if _read(descriptors, offsets, sizes, pieces.starts, pieces.data) else None


@njit(nogil=True, cache=True)
def _copy(addresses: Any, sizes: Any, starts: Any, out: Any) -> None:
    target = out.ctypes.data
    for piece in range(addresses.size):
        copy_memory(np.uintp(target + starts[piece]), np.uintp(addresses[piece]), np.uintp(sizes[piece]))


def copy_pieces(addresses: NDArray[np.int64], sizes: NDArray[np.int64]) -> Pieces | None:
    """Copy pieces of memory, ``[N]`` each; whoever calls keeps it alive. The GIL is free meanwhile.

    Args:
        addresses: of the first bytes.
        sizes: numbers of bytes.

    Returns:
        the pieces; None where they are large.
    """
    if not Pieces.are_few(sizes):
        return None
    pieces = Pieces(sizes)
    _copy(addresses, sizes, pieces.starts, pieces.data)
    return pieces


@njit(nogil=True, cache=True)
def _fill(paths: Any, flags: int, starts: Any, stops: Any, out: Any) -> tuple[int, int]:
    """Read files whose paths end with zeros; return how many, and what is wanted for the next one."""
    path, place = 0, 0
    for file in range(starts.size):
        descriptor = open_file(np.uintp(paths.ctypes.data + path), flags)
        if descriptor < 0:
            return file, -1
        size = file_size(descriptor)
        has_room = size <= out.size - place
        is_read = has_room and size > 0 and read_part(descriptor, 0, size, out.ctypes.data + place)
        close_file(descriptor)
        if not is_read:
            return file, -1 if has_room else size
        starts[file], stops[file] = place, place + size
        place = (place + size + (_ALIGNMENT_BYTES - 1)) & -_ALIGNMENT_BYTES
        while paths[path]:
            path += 1
        path += 1
    return starts.size, 0


def fill_with_files(paths: list[bytes], flags: int, memory: NDArray[np.uint8]) -> tuple[list[NDArray[np.uint8]], int]:
    """Read whole files as long as there is room, one open at a time. The GIL is free meanwhile.

    Args:
        paths: ``[N]``, without zeros in them.
        flags: for ``open`` of the C library.
        memory: to be filled, uint8 ``[n]``.

    Returns:
        contents of the first files, uint8 ``[bytes]`` each, and the bytes that the next one takes: 0 where all are
        read, -1 where it is empty or cannot be read.
    """
    starts, stops = np.empty(len(paths), np.int64), np.empty(len(paths), np.int64)
    text = np.frombuffer(b"\0".join(paths) + b"\0", np.uint8)
    count, wanted_bytes = _fill(text, flags, starts, stops, memory)
    return samples_in(memory, starts[:count], stops[:count]), wanted_bytes
