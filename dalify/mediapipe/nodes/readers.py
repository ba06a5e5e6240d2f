"""Readers of folders: images in class folders, and NumPy files.

They return paths; the files are read in the threads of the pipeline.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from dalify import fn as dali
from dalify.base.errors import ArgumentValueError, DecodeError, ReaderError
from dalify.base.regular_files import open_regular
from dalify.base.wording import counted
from dalify.data import Batch, TensorListCPU
from dalify.formats import OpenFiles, files_in_class_folders, read_numpy_header
from dalify.mediapipe.media_types import dtype as types
from dalify.mediapipe.media_types import to_dalify_type
from dalify.mediapipe.node import Lowering, Value, operator, with_layout
from dalify.mediapipe.slicing import IndexedReader, SlicedOrder, SliceOptions
from dalify.registry import Parameters

_ARCHIVE = ".npz"
_VOLUME = "CDHW"
_SYNONYMS = {"jpeg": ("jpeg", "jpg"), "jpg": ("jpeg", "jpg")}


def path_rows(paths: Iterable[Any]) -> TensorListCPU:
    """Convert paths to the input of ``fn.io.file.read``; later errors then contain the path."""
    names = [str(path) for path in paths]
    return TensorListCPU(Batch(None, [np.frombuffer(os.fsencode(name), np.uint8) for name in names], "", "cpu", names))


@dataclass(slots=True)
class LabeledFiles(Parameters):
    """The files of a folder of class folders, or of a list.

    Attributes:
        dir: folder with one folder per class; the label is the index of the class in byte order of the names.
        label_dtype: dtype of the labels.
        file_list: the files, instead of `dir`.
        class_list: names of the classes, in the order of their labels (with `dir`: the folders to read).
        file_classes: class of each file of `file_list`.
    """

    dir: str | None = None
    label_dtype: str = types.UINT64
    file_list: Sequence[str] | None = None
    class_list: Sequence[str] | None = None
    file_classes: Sequence[str] | None = None

    def found(self, extension: str) -> tuple[list[str], np.ndarray[Any, Any]]:
        """Return the paths of the files and their labels.

        Raises:
            ArgumentValueError: there is neither folder nor list, or a list without classes.
            ReaderError: the folder cannot be used.
        """
        paths, labels = self._of_folder(extension) if self.file_list is None else self._of_list(self.file_list)
        return paths, np.array(labels).astype(to_dalify_type(self.label_dtype).numpy)

    def _of_list(self, files: Sequence[str]) -> tuple[list[str], list[int]]:
        classes = self.file_classes
        if classes is None or len(classes) != len(files):
            raise ArgumentValueError("file_list needs file_classes with the class of each file.")
        known = sorted(set(classes)) if self.class_list is None else list(self.class_list)
        numbers = {name: number for number, name in enumerate(known)}
        unknown = next((name for name in classes if name not in numbers), None)
        if unknown is not None:
            raise ArgumentValueError(f"the class {unknown!r} of file_classes is not in class_list.")
        return [str(path) for path in files], [numbers[name] for name in classes]

    def _of_folder(self, extension: str) -> tuple[list[str], list[int]]:
        if not self.dir:
            raise ArgumentValueError("specify dir or file_list.")
        endings = _SYNONYMS.get(extension.lower(), (extension.lower(),))
        found = files_in_class_folders(
            str(self.dir),
            dir_filters=self.class_list,
            file_filters=[f"*.{ending}" for ending in endings],
            case_sensitive_filter=False,
        )
        return [entry.path for entry in found], [entry.label for entry in found]


@operator(outputs=2)
def ReadImageDatasetFromDir(
    context: Lowering,
    /,
    *,
    files: LabeledFiles,
    format: str = "JPEG",
    seed: int | None = None,
    slices: SliceOptions,
) -> tuple[Value, Value]:
    """Read the images of a folder of class folders.

    Args:
        context: the graph.
        files: the images and their classes.
        format: extension of the files, case-insensitive; "JPEG" and "jpg" match both.
        seed: seed of the order.
        slices: order, slice and padding.

    Returns:
        paths for a decoder, and labels, one number each.
    """
    paths, labels = files.found(format)
    order = SlicedOrder(len(paths), context.batch_size, slices, seed=seed, pipe_seed=context.seed)
    reader = IndexedReader(order, lambda items, _: (path_rows([paths[item] for item in items]), labels[items]))
    kinds = [_UINT8, to_dalify_type(files.label_dtype)]
    images, classes = context.read(reader, 2, dtype=kinds, ndim=[1, 0])
    return Value(images, kind="path"), Value(classes)


_UINT8 = to_dalify_type(types.UINT8)


@operator(outputs="num_outputs")
def ReadNumpyDatasetFromDir(
    context: Lowering,
    /,
    *,
    num_outputs: int = 1,
    dir: str | None = None,
    pattern: str | Sequence[str] | None = None,
    file_list: Sequence[Any] | None = None,
    shuffle_across_dataset: bool = False,
    dense: bool = True,
    dtype: str | Sequence[str] = types.FLOAT32,
    seed: int | None = None,
    slices: SliceOptions,
) -> tuple[Value, ...]:
    """Read NumPy files, ``.npy`` or ``.npz`` with one array, for example volumes and their labels.

    ``.npy`` is read in the pipe's threads, ``.npz`` in the calling thread. Arrays with four dimensions are interpreted
    as volumes: channels, depth, height, width, in NumPy's order.

    Args:
        context: the graph.
        num_outputs: number of files per item, e.g. 2 for images and labels.
        dir: folder of the files.
        pattern: file name pattern for each output ("x_*.npy"); files are matched in the order of their names.
        file_list: the files, one list for each output (or a list, for one output), instead of `dir`.
        shuffle_across_dataset: divide the dataset into slices again in each epoch.
        dense: accepted but ignored; arrays may differ in shape.
        dtype: dtype, one for all or one per output.
        seed: seed of the order.
        slices: order, slice and padding.

    Returns:
        `num_outputs` arrays.
    """
    del dense
    lists = _numpy_files(num_outputs, dir, pattern, file_list)
    names = [dtype] * num_outputs if isinstance(dtype, str) else list(dtype)
    kinds = [to_dalify_type(name) for name in names]
    if len(kinds) != num_outputs:
        raise ArgumentValueError(f"dtype has {counted(len(kinds), 'entry')} for {counted(num_outputs, 'output')}.")
    order = SlicedOrder(
        len(lists[0]),
        context.batch_size,
        slices,
        seed=seed,
        pipe_seed=context.seed,
        shuffle_across=shuffle_across_dataset,
    )
    packed = [each[0].endswith(_ARCHIVE) for each in lists]

    def take(items: np.ndarray[Any, Any], _: int) -> tuple[Any, ...]:
        paths = [[each[item] for item in items] for each in lists]
        return tuple(
            [_unpacked(path, kind.numpy) for path in found] if is_packed else path_rows(found)
            for found, kind, is_packed in zip(paths, kinds, packed, strict=True)
        )

    depths = [
        _unpacked(each[0]).ndim if is_packed else _depth(each[0]) for each, is_packed in zip(lists, packed, strict=True)
    ]
    nodes = context.read(
        IndexedReader(order, take),
        num_outputs,
        dtype=[kind if is_packed else _UINT8 for kind, is_packed in zip(kinds, packed, strict=True)],
        ndim=[depth if is_packed else 1 for depth, is_packed in zip(depths, packed, strict=True)],
    )
    arrays = [
        node if is_packed else dali.decoders.numpy(dali.io.file.read(node), dtype=kind)
        for node, kind, is_packed in zip(nodes, kinds, packed, strict=True)
    ]
    layouts = [_VOLUME if depth == len(_VOLUME) else "" for depth in depths]
    return tuple(
        Value(with_layout(array, layout), layout, is_bfloat16=name == types.BFLOAT16)
        for array, layout, name in zip(arrays, layouts, names, strict=True)
    )


def _unpacked(path: str, dtype: Any = None) -> np.ndarray[Any, Any]:
    try:
        with open(open_regular(path), "rb") as file, np.load(file) as archive:  # noqa: PTH123 -- a descriptor
            count = len(archive.files)
            array = archive[archive.files[0]] if count == 1 else None
    except (OSError, EOFError, ValueError, BadZipFile, zlib.error) as error:
        raise ReaderError(f"cannot read the arrays of {path!r}: {error}.") from error
    if array is None:
        raise ReaderError(f"{path} must contain one array; it has {count}.")
    return np.asarray(array, dtype=dtype)


def _depth(path: str) -> int:
    """Return the number of dimensions of the array of a ``.npy`` file."""
    try:
        return len(read_numpy_header(OpenFiles([path])).shape)
    except DecodeError as error:
        error.locate(origin=path)
        raise


def _numpy_files(
    count: int, folder: str | None, pattern: str | Sequence[str] | None, file_list: Sequence[Any] | None
) -> list[list[str]]:
    if file_list is not None:
        lists = [[str(path) for path in each] for each in ([file_list] if _is_flat(file_list) else file_list)]
    elif folder and pattern:
        patterns = [pattern] if isinstance(pattern, str) else list(pattern)
        lists = [sorted((str(path) for path in Path(folder).glob(each)), key=_natural) for each in patterns]
    else:
        raise ArgumentValueError("specify dir and pattern, or file_list.")
    if len(lists) != count:
        raise ArgumentValueError(
            f"{counted(count, 'output')} need {count} lists or patterns of files; got {len(lists)}."
        )
    lengths = [len(each) for each in lists]
    if not all(lengths) or len(set(lengths)) > 1:
        raise ReaderError(f"the outputs need the same positive number of files; found {lengths}.")
    for each in lists:
        ending = _ARCHIVE if each[0].endswith(_ARCHIVE) else ".npy"
        mismatched = next((path for path in each if not path.endswith(ending)), None)
        if mismatched is not None:
            raise ReaderError(
                f"files must be named {ending}, like the first of their list; got {mismatched}.",
                hint="Store arrays with numpy.save.",
            )
    return lists


def _is_flat(file_list: Sequence[Any]) -> bool:
    return bool(file_list) and isinstance(file_list[0], (str, Path))


def _natural(path: str) -> list[Any]:
    """Sort key that orders x_2 before x_10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", path)]
