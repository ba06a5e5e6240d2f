"""Reading one file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dalify.base.errors import ReaderError
from dalify.formats.whole_file import read_file


@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_contents_come_whole(tmp_path: Path, size: int) -> None:
    contents = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    path = tmp_path / "file"
    path.write_bytes(contents.tobytes())
    result = read_file(str(path))
    assert result.dtype == np.uint8
    np.testing.assert_array_equal(result, contents)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReaderError, match=r"nowhere.jpg.*No such file"):
        read_file(str(tmp_path / "nowhere.jpg"))
    with pytest.raises(ReaderError, match="Is a directory"):
        read_file(str(tmp_path))
