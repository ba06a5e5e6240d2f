"""Saves and loads COCO annotations as a folder of arrays, in DALI's format.

Each file is the number of its elements (int32) followed by the elements, little-endian; the names of the images are
text. Boxes and vertices are saved in the requested form.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ReaderError
from dalify.base.regular_files import read_regular
from dalify.base.whole_files import write_whole
from dalify.base.wording import counted
from dalify.formats.annotations.coco import Annotations

_BOXES, _LABELS, _COUNTS, _OFFSETS = "boxes.dat", "labels.dat", "counts.dat", "offsets.dat"
_IDS, _NAMES = "original_ids.dat", "filenames.dat"
_POLYGONS, _VERTICES = "polygon_data.dat", "vertices.dat"
_HEIGHTS, _WIDTHS = "heights.dat", "widths.dat"
_RLES, _RLE_NUMBERS = "masks_rles.dat", "masks_rles_idx.dat"


def save(folder: str, found: Annotations, *, has_masks: bool, has_ids: bool, has_extents: bool) -> None:
    """Write annotations into a folder, which is created if absent.

    Args:
        folder: the destination.
        found: the annotations.
        has_masks: whether polygons are saved.
        has_ids: whether image ids are saved.
        has_extents: whether run-length encoded masks, heights and widths are saved.

    Raises:
        ReaderError: the folder cannot be written.
    """
    root = Path(folder)
    try:
        root.mkdir(parents=True, exist_ok=True)
        # Its elements are single numbers, not boxes.
        _write(root / _BOXES, found.boxes.reshape(-1))
        _write(root / _LABELS, found.labels)
        _write(root / _COUNTS, np.diff(found.box_firsts).astype(np.int32))
        _write(root / _OFFSETS, found.box_firsts[:-1].astype(np.int32))
        write_whole(root / _NAMES, (f"{name}\n".encode(errors="surrogateescape") for name in found.names))
        if has_ids and found.ids is not None:
            _write(root / _IDS, found.ids)
        if has_masks and found.polygons is not None and found.vertices is not None:
            assert found.polygon_firsts is not None, "dalify bug: polygons without their offsets"
            assert found.vertex_firsts is not None, "dalify bug: vertices without their offsets"
            _write(root / _POLYGONS, found.polygons)
            _write(root / _VERTICES, found.vertices)
            for name, firsts in (("polygon", found.polygon_firsts), ("vertices", found.vertex_firsts)):
                plural = {"polygon": "polygons"}.get(name, name)
                _write(root / f"{plural}_count.dat", np.diff(firsts))
                _write(root / f"{name}_offset.dat", firsts[:-1])
        if has_extents and found.extents is not None:
            _write(root / _HEIGHTS, found.extents[:, 0])
            _write(root / _WIDTHS, found.extents[:, 1])
            _save_rles(root, found)
    except OSError as error:
        raise ReaderError(f"cannot save the annotations to {folder!r}: {error.strerror}.") from None


def _save_rles(root: Path, found: Annotations) -> None:
    masks = [found.rles.get(number, []) for number in range(len(found.names))]
    counts = np.array([len(own) for own in masks], np.int64)
    _write(root / "mask_count.dat", counts)
    _write(root / "masks_offset.dat", np.cumsum(counts) - counts)
    _write(root / _RLE_NUMBERS, np.array([number for own in masks for number, _ in own], np.int32))
    parts = [np.int32(counts.sum()).tobytes()]
    for own in masks:
        for _, (height, width, runs) in own:
            parts += [np.array([height, width, len(runs)], np.uint64).tobytes(), runs.astype("<u4").tobytes()]
    write_whole(root / _RLES, parts)


def _write(path: Path, values: NDArray[Any]) -> None:
    write_whole(path, [np.int32(len(values)).tobytes(), np.ascontiguousarray(values).tobytes()])


def load(folder: str, *, has_masks: bool, has_ids: bool, has_extents: bool) -> Annotations:
    """Load saved annotations.

    Args:
        folder: the folder of the saved annotations.
        has_masks: whether polygons are loaded.
        has_ids: whether image ids are loaded.
        has_extents: whether run-length encoded masks, heights and widths are loaded.

    Raises:
        ReaderError: a file is damaged, or absent because it was not saved.
    """
    root = Path(folder)
    numbers = _read(root / _BOXES, np.float32)
    if len(numbers) % 4:
        raise ReaderError(
            f"{str(root / _BOXES)!r} is damaged: its {counted(len(numbers), 'number')} are not a multiple of 4."
        )
    boxes = numbers.reshape(-1, 4)
    labels = _read(root / _LABELS, np.int32)
    counts = _read(root / _COUNTS, np.int32)
    try:
        names = read_regular(str(root / _NAMES)).decode("utf-8", "surrogateescape").split("\n")
    except OSError as error:
        raise _unreadable(root / _NAMES, error) from None
    if not names[-1]:  # after the last line; str.splitlines also splits at characters that may occur in names
        names.pop()
    if len(names) != len(counts) or len(labels) != len(boxes):
        raise _inconsistent(folder)
    found = Annotations(names, None, None, _firsts(counts, len(boxes), folder), boxes, labels)
    if has_ids:
        found.ids = _read(root / _IDS, np.int32)
        if len(found.ids) != len(names):
            raise _inconsistent(folder)
    if has_masks:
        found.polygons = _read(root / _POLYGONS, np.int32, 3)
        found.vertices = _read(root / _VERTICES, np.float32, 2)
        found.polygon_firsts = _firsts(_read(root / "polygons_count.dat", np.int64), len(found.polygons), folder)
        found.vertex_firsts = _firsts(_read(root / "vertices_count.dat", np.int64), len(found.vertices), folder)
        if not len(found.polygon_firsts) == len(found.vertex_firsts) == len(names) + 1:
            raise _inconsistent(folder)
    if has_extents:
        heights, widths = _read(root / _HEIGHTS, np.int32), _read(root / _WIDTHS, np.int32)
        if not len(heights) == len(widths) == len(names):
            raise _inconsistent(folder)
        found.extents = np.stack([heights, widths], axis=1)
        _load_rles(root, found)
    return found


def _load_rles(root: Path, found: Annotations) -> None:
    counts = _read(root / "mask_count.dat", np.int64)
    numbers = _read(root / _RLE_NUMBERS, np.int32)
    _firsts(counts, len(numbers), str(root))
    if len(counts) != len(found.names):
        raise _inconsistent(str(root))
    data = _bytes(root / _RLES)
    place = 4
    left = iter(numbers.tolist())
    for image, count in enumerate(counts.tolist()):
        for _ in range(count):
            is_whole = place + 24 <= len(data)
            head = np.frombuffer(data[place : place + 24], np.uint64) if is_whole else np.zeros(3, np.uint64)
            size = int(head[2]) if is_whole else len(data)
            if place + 24 + 4 * size > len(data):
                raise ReaderError(f"{str(root / _RLES)!r} is damaged.")
            runs = np.frombuffer(data[place + 24 : place + 24 + 4 * size], "<u4")
            place += 24 + 4 * size
            found.rles.setdefault(image, []).append((next(left), (int(head[0]), int(head[1]), runs)))


def _firsts(counts: NDArray[Any], total: int, folder: str) -> NDArray[np.int64]:
    firsts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    if (counts < 0).any() or firsts[-1] != total:
        raise _inconsistent(folder)
    return firsts


def _read(path: Path, dtype: Any, width: int = 1) -> NDArray[Any]:
    data = _bytes(path)
    count = int(np.frombuffer(data[:4], "<i4")[0]) if len(data) >= 4 else -1
    if count < 0 or len(data) != 4 + count * width * np.dtype(dtype).itemsize:
        raise ReaderError(f"{str(path)!r} is damaged: its size does not match its {counted(count, 'element')}.")
    values = np.frombuffer(data[4:], dtype)
    return values.reshape(-1, width) if width > 1 else values


def _bytes(path: Path) -> bytes:
    try:
        return read_regular(str(path))
    except OSError as error:
        raise _unreadable(path, error) from None


def _inconsistent(folder: str) -> ReaderError:
    return ReaderError(f"the saved annotations in {folder!r} are inconsistent.")


def _unreadable(path: Path, error: OSError) -> ReaderError:
    return ReaderError(
        f"cannot read {str(path)!r}: {error.strerror}.",
        hint="Save the annotations again, with the outputs that you request now.",
    )
