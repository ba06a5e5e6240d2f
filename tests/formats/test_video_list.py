"""List files of videos: invalid lines are reported with their numbers."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from dalify.base.errors import ReaderError
from dalify.formats.files.video_list import videos_of_list


def test_bounds_are_read_exactly(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("a.mp4 1 0.12 1e2\n")
    (part,) = videos_of_list(str(path), allow_outside_root=False)
    assert (part.start, part.end) == (Fraction(12, 100), Fraction(100))


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("a.mp4 1\r\n", encoding="utf-8-sig", newline="")
    (part,) = videos_of_list(str(path), allow_outside_root=False)
    assert (part.path, part.label) == (str(tmp_path / "a.mp4"), 1)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "bound", ["1e999999999", "1e400", "-1E+0500", "1e-1_000", "1" * 5000, "nan", "inf", "x", "1/0"]
)
def test_bounds_that_are_not_numbers(tmp_path: Path, bound: str) -> None:
    """A fraction stores all digits: those of 1e999999999 would exceed the memory."""
    path = tmp_path / "list.txt"
    path.write_text(f"a.mp4 1\nb.mp4 2 {bound}\n")
    with pytest.raises(ReaderError, match=r"list\.txt, line 2: start and end must be numbers"):
        videos_of_list(str(path), allow_outside_root=False)
