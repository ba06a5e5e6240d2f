"""WebDataset: samples in tar archives, grouped by file name.

A sample consists of consecutive files that have the same path up to the first dot of the file name. The index is that
of DALI's ``wds2idx``.
"""

from __future__ import annotations

import os
import warnings
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ReaderError
from dalify.base.whole_files import write_file
from dalify.base.wording import counted
from dalify.data import DALIDataType
from dalify.data.batch import Batch
from dalify.formats.files.pieces import SMALL_BYTES, copy_rows, samples_in
from dalify.formats.files.storage import read_copy, without_mark
from dalify.formats.records.records import ContainerEntries, paired
from dalify.formats.records.tar import BLOCK_BYTES, member_name, members
from dalify.formats.records.webdataset_places import Extensions, PiecesByOutput, places_in_archive, places_in_index

# A sample as a list of its files: extension, offset, size.
_Components = list[tuple[bytes, int, int]]
_MAX_GAP_BYTES = 1 << 13
_MAX_DIGITS = 18
_VERSIONS = {b"v1.1": 3, b"v1.2": 4}  # words per file of a sample


class Sample(NamedTuple):
    """One sample: the positions of its outputs; an offset of -1 is a missing file."""

    samples: Samples
    file: int
    number: int

    @property
    def origin(self) -> str:
        """Archive and offset, for error messages."""
        last = max(self.samples.places[self.number, :, 0].tolist())
        return f"{self.samples.files.paths[self.file]}" + (f" at byte {last}" if last >= 0 else "")

    def source_info(self, output: int) -> str:
        """Return archive, offset and name of the file of an output, as in DALI; "" if it is missing."""
        offset = int(self.samples.places[self.number, output, 0])
        name = None if offset < 0 else member_name(partial(self.samples.files.read, self.file), offset)
        return "" if name is None else f"{self.samples.files.paths[self.file]}:{offset}:{os.fsdecode(name)}"

    def read(self) -> tuple[NDArray[Any], ...]:
        """Return the contents of the files, one array ``[n]`` per output; empty if a file is missing.

        Raises:
            ReaderError: an archive cannot be read.
        """
        samples = self.samples
        places = samples.places[self.number].tolist()
        found = [place for place in places if place[0] >= 0]
        if len(found) > 1:
            start, stop = min(found)[0], max(offset + size for offset, size in found)
            if stop - start <= sum(size for _, size in found) + _MAX_GAP_BYTES:
                # Neighbors are read in one call; reading the headers between them is faster than another call.
                whole = samples.files.read(self.file, start, stop - start)
                return tuple(
                    np.empty(0, dtype)
                    if offset < 0
                    else _elements(whole[offset - start : offset - start + size], dtype)
                    for dtype, (offset, size) in zip(samples.dtypes, places, strict=True)
                )
        return tuple(
            np.empty(0, dtype) if offset < 0 else samples.files.read(self.file, offset, size).view(dtype)
            for dtype, (offset, size) in zip(samples.dtypes, places, strict=True)
        )

    def substitute(self) -> tuple[NDArray[Any], ...]:
        """Return a placeholder for an unreadable sample: an empty first output, and the others if they are readable."""
        samples = self.samples
        first, *others = zip(samples.dtypes, samples.places[self.number].tolist(), strict=True)
        return (np.empty(0, first[0]), *(self._contents_or_empty(dtype, *place) for dtype, place in others))

    def _contents_or_empty(self, dtype: np.dtype[Any], offset: int, size: int) -> NDArray[Any]:
        try:
            return self.samples.files.read(self.file, offset, size).view(dtype)
        except ReaderError:
            return np.empty(0, dtype)


def _elements(data: NDArray[np.uint8], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return bytes as elements; small arrays are copied, so that a label does not keep the memory of an image alive."""
    elements = (data.copy() if len(data) <= SMALL_BYTES else data).view(dtype)
    return elements if elements.flags.aligned else elements.copy()


def _slices(
    data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64], dtype: np.dtype[Any]
) -> Batch | list[NDArray[Any]]:
    """Return slices of memory; small slices are copied, see ``_elements``."""
    if dtype == np.uint8:
        return samples_in(data, starts, stops)
    return [_elements(data[start:stop], dtype) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]


class Samples(ContainerEntries[Sample]):
    """The samples of several archives.

    Args:
        paths: paths of the archives.
        places: int64 ``[samples, outputs, 2]``: offset and size, -1 for missing files.
        counts: number of samples in each archive.
        dtypes: dtypes of the outputs.
    """

    __slots__ = ("dtypes", "places")

    def __init__(
        self, paths: Sequence[str], places: NDArray[np.int64], counts: Sequence[int], dtypes: Sequence[np.dtype[Any]]
    ) -> None:
        super().__init__(paths, counts)
        self.places = places
        self.dtypes = list(dtypes)

    def _entry(self, number: int) -> Sample:
        return Sample(self, bisect_right(self._firsts, number) - 1, number)

    def read_many(self, numbers: NDArray[np.int64]) -> tuple[Any, ...] | None:
        """Return the outputs of samples, each an array ``[N, n]`` or a list of N arrays.

        None if each sample must be read separately.
        """
        found = PiecesByOutput(numbers, self.places, self._starts)
        pieces = found.pieces
        if pieces is None:
            return None
        data, count = pieces.data, len(numbers)
        columns: list[Any] = []  # created before the bytes are read, see ``Pieces``
        for dtype, (starts, sizes), low, high in zip(
            self.dtypes, found.spans, found.bounds[::2], found.bounds[1::2], strict=True
        ):
            if low == high <= SMALL_BYTES:
                columns.append(np.empty((count, low), np.uint8))
            elif low > SMALL_BYTES and dtype == np.uint8:
                columns.append(Batch(dtype=DALIDataType.UINT8, ragged=(data, starts, sizes[:, None])))
            else:
                columns.append(None)
        if not self.files.fill(pieces, *found.archives):
            return None
        for output, column in enumerate(columns):
            dtype, (starts, sizes) = self.dtypes[output], found.spans[output]
            if column is None:
                columns[output] = _slices(data, starts, starts + sizes, dtype)
            elif not isinstance(column, Batch):
                copy_rows(data, starts, column)
                columns[output] = column.view(dtype)
        return tuple(columns)


def samples_of(
    paths: Sequence[str],
    index_paths: Sequence[str] | None,
    extensions: Sequence[str],
    dtypes: Sequence[DALIDataType],
    *,
    missing: str,
    case_sensitive: bool,
) -> Samples:
    """Find the samples of archives.

    Args:
        paths: paths of the archives.
        index_paths: paths of the indices, one per archive; None to scan the archives.
        extensions: extensions of each output; alternatives are separated by ";".
        dtypes: dtypes of the outputs.
        missing: handling of a sample without a file for an output: ``empty``, ``skip`` or ``error``.
        case_sensitive: whether extensions are case-sensitive.

    Raises:
        ReaderError: an archive or index is absent or damaged; a file is missing with ``error``; a size is not a
            multiple of the element size.
        ArgumentValueError: the numbers of indices and archives differ.
    """
    outputs = _OutputMap(extensions, dtypes, missing, case_sensitive)
    tables = [_places(path, index, outputs) for path, index in paired(paths, index_paths or None, "index_paths")]
    places = np.concatenate(tables)
    if len(places):
        _warn_of_unused(extensions, places)
    return Samples(paths, places, list(map(len, tables)), [dtype.numpy for dtype in dtypes])


def _warn_of_unused(extensions: Sequence[str], places: NDArray[np.int64]) -> None:
    """Warn if no sample has a file for an output, because its extension is probably misspelled."""
    for output, name in enumerate(extensions):
        if places[:, output, 0].max() < 0:
            dot = " Extensions are specified without the first dot." if name.startswith(".") else ""
            warnings.warn(f"no sample has a file for ext {name!r}: this output is always empty.{dot}", stacklevel=2)


def _places(path: str, index: str | None, outputs: _OutputMap) -> NDArray[np.int64]:
    """Return offsets and sizes of the outputs of the samples of an archive, ``[samples, outputs, 2]``."""
    found = (
        places_in_archive(path, outputs.extensions) if index is None else _places_from_index(index, outputs.extensions)
    )
    if found is not None and outputs.accepts(found):
        return outputs.without_skipped(found)
    places = array("q")
    for components in _grouped(path) if index is None else _read_index(index):
        outputs.add(places, components, path)
    return np.frombuffer(places, np.int64).reshape(-1, outputs.extensions.count, 2)


class _OutputMap:
    """Assigns the files of a sample to outputs."""

    def __init__(
        self, extensions: Sequence[str], dtypes: Sequence[DALIDataType], missing: str, case_sensitive: bool
    ) -> None:
        self._fold: Callable[[bytes], bytes] = bytes if case_sensitive else bytes.lower
        self._outputs: dict[bytes, list[int]] = {}
        for output, alternatives in enumerate(extensions):
            for extension in alternatives.split(";"):
                if extension:
                    self._outputs.setdefault(self._fold(os.fsencode(extension)), []).append(output)
        self._names = list(extensions)
        self._sizes = [dtype.numpy.itemsize for dtype in dtypes]
        self._missing = missing
        self._has_warned = False
        pairs = [(extension, output) for extension, outputs in self._outputs.items() for output in outputs]
        self.extensions = Extensions(pairs, self._sizes, folds=not case_sensitive)

    def accepts(self, places: NDArray[np.int64]) -> bool:
        """Return whether samples are valid; a missing file may be an error."""
        return self._missing != "error" or bool(places.min(initial=0) >= 0)

    def without_skipped(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of samples that are not skipped."""
        return places[(places[:, :, 0] >= 0).all(1)] if self._missing == "skip" else places

    def add(self, places: array[int], components: _Components, path: str) -> None:
        """Append offset and size of each output, unless the sample is skipped."""
        row = [-1] * (2 * len(self._names))
        for extension, offset, size in components:
            for output in self._outputs.get(self._fold(extension), ()):
                if row[2 * output] >= 0:
                    self._warn(output, path)
                    continue
                if size % self._sizes[output]:
                    raise ReaderError(
                        f"{path!r}: the file {os.fsdecode(extension)!r} at byte {offset} has {size} bytes, which is "
                        f"not a multiple of the element size in dtypes, {self._sizes[output]} bytes.",
                    )
                row[2 * output : 2 * output + 2] = offset, size
        if self._missing != "empty" and min(row) < 0:
            if self._missing == "skip":
                return
            output = row.index(-1) // 2
            place = f"the sample at byte {components[0][1]}" if components else "a sample without files"
            raise ReaderError(
                f"{path!r}: {place} has no file for ext {self._names[output]!r}.",
                hint="Set missing_component_behavior to 'skip' or 'empty' to allow this.",
            )
        places.extend(row)

    def _warn(self, output: int, path: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{path!r}: several files of a sample match ext {self._names[output]!r}; the first one is used.",
                stacklevel=2,
            )


def _split(name: bytes) -> tuple[bytes, bytes]:
    """Split a name into the name of its sample and its extension, at the first dot."""
    dot = name.find(b".", name.rfind(b"/") + 1)
    return (name, b"") if dot < 0 else (name[:dot], name[dot + 1 :])


def _grouped(path: str) -> Iterator[_Components]:
    """Yield the samples of an archive. Files with names that start with a dot are ignored."""
    for group in _named_groups(path):
        yield [(_split(name)[1], offset, size) for name, offset, size in group]


def _named_groups(path: str) -> Iterator[list[tuple[bytes, int, int]]]:
    group: list[tuple[bytes, int, int]] = []
    last: bytes | None = None
    for member in members(path):
        base, _ = _split(member.name)
        if not base or base.endswith(b"/"):
            continue
        if base != last and group:
            yield group
            group = []
        last = base
        group.append(member)
    if group:
        yield group


def _places_from_index(index: str, extensions: Extensions) -> NDArray[np.int64] | None:
    """Return the positions in an index; None if it must be parsed line by line."""
    text = without_mark(read_copy(index, "the index"), index, "the index")
    first = text.find(b"\n") + 1
    found = _width_and_count(text[:first])
    if found is None:
        return None
    width, count = found
    return places_in_index(text, first, count, width, extensions)


def _width_and_count(line: bytes) -> tuple[int, int] | None:
    """Return the words per file and the number of samples that the first line of an index declares, or None."""
    words = line.split()
    if len(words) != 2 or words[0] not in _VERSIONS or not words[1].isdigit() or len(words[1]) > _MAX_DIGITS:
        return None
    return _VERSIONS[words[0]], int(words[1])


def _read_index(index: str) -> Iterator[_Components]:
    lines = without_mark(read_copy(index, "the index"), index, "the index").splitlines()
    head = _width_and_count(lines[0]) if lines else None
    if head is None:
        raise ReaderError(
            f"{index!r} is not a WebDataset index: it must start with its version, v1.1 or v1.2, and a count.",
            hint="Create it again: python -m dalify.tools.wds2idx ARCHIVE INDEX",
        )
    width, count = head
    if len(lines) <= count:
        raise ReaderError(
            f"the index {index!r} is truncated: {counted(count, 'sample')} but {counted(len(lines) - 1, 'line')}."
        )
    for number, line in enumerate(lines[1 : count + 1], 2):
        words = line.split()
        try:
            if not words or len(words) % width:
                raise ValueError
            yield [
                (extension, *_place(offset, size))
                for extension, offset, size in zip(words[::width], words[1::width], words[2::width], strict=True)
            ]
        except ValueError:
            names = f"extension, offset (a multiple of {BLOCK_BYTES}), size" + (", name" if width == 4 else "")
            raise ReaderError(f"{index}, line {number}: expected {names} for every file of a sample.") from None


def _place(offset: bytes, size: bytes) -> tuple[int, int]:
    """Parse offset and size of a file in an archive; return 63-bit integers.

    Raises:
        ValueError: the bytes are not such integers.
    """
    if not (offset.isdigit() and size.isdigit() and len(offset) <= _MAX_DIGITS and len(size) <= _MAX_DIGITS):
        raise ValueError
    if int(offset) % BLOCK_BYTES:
        raise ValueError
    return int(offset), int(size)


def write_index(path: str, index: str) -> int:
    """Scan an archive and write its index; return the number of samples.

    Raises:
        ReaderError: the archive cannot be read, is damaged or contains no samples, or a name cannot be stored in an
            index.
    """
    groups = list(_named_groups(path))
    if not groups:
        raise ReaderError(f"the archive {path!r} contains no samples.")
    names = [name for group in groups for name, _, _ in group]
    has_blanks = any(len(name.split()) != 1 for name in names)
    lines = []
    for group in groups:
        words: list[bytes] = []
        for name, offset, size in group:
            extension = _split(name)[1] or name.rpartition(b"/")[2]
            if len(extension.split()) != 1:
                raise ReaderError(f"{path!r}: an index cannot store the extension {os.fsdecode(extension)!r}.")
            words += [extension, b"%d" % offset, b"%d" % size]
            if not has_blanks:
                words.append(name)
        lines.append(b" ".join(words))
    version = b"v1.1" if has_blanks else b"v1.2"  # only v1.2 stores names, which must not contain blanks
    write_file(index, b"%s %d\n%s\n" % (version, len(groups), b"\n".join(lines)))
    return len(groups)
