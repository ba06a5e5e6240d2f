"""Reads containers and folders, and creates indexes for readers, so that any sample can be read by its number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalify.base.optional import imported_at_first_use

if TYPE_CHECKING:
    from dalify.formats.annotations.coco import BoxOptions, read_annotations
    from dalify.formats.arrays.numpy_window import read_numpy_header
    from dalify.formats.files.data_root import DataRoot
    from dalify.formats.files.file_list import files_in_class_folders
    from dalify.formats.files.open_files import OpenFiles

__all__ = [
    "BoxOptions",
    "DataRoot",
    "OpenFiles",
    "files_in_class_folders",
    "read_annotations",
    "read_numpy_header",
]

# Most programs need only one format.
__getattr__ = imported_at_first_use(
    __name__,
    {
        "BoxOptions": "annotations.coco",
        "DataRoot": "files.data_root",
        "OpenFiles": "files.open_files",
        "files_in_class_folders": "files.file_list",
        "read_annotations": "annotations.coco",
        "read_numpy_header": "arrays.numpy_window",
    },
)
