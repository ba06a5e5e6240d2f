"""Files as Python file objects."""

from __future__ import annotations

import io
from pathlib import Path

from dalify.formats.files.file_object import FileObject
from dalify.formats.files.open_files import OpenFiles


def test_reads_as_pythons_own_files(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(10)))
    with path.open("rb", buffering=0) as expected:
        found = FileObject(OpenFiles([str(path)]), 0)
        for offset, whence in ((3, io.SEEK_SET), (2, io.SEEK_CUR), (-4, io.SEEK_END), (5, io.SEEK_END)):
            for size in (0, 2, 100, -1):
                assert found.seek(offset, whence) == expected.seek(offset, whence)
                assert bytes(found.read(size)) == expected.read(size)
                assert found.tell() == expected.tell()
                parts = bytearray(3), bytearray(3)
                assert found.readinto(parts[0]) == expected.readinto(parts[1])
                assert parts[0] == parts[1]
