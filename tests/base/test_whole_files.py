"""Atomic writing: a file is complete or absent."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dalify.base import whole_files
from dalify.base.whole_files import write_file, write_whole


def test_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for contents in ([b"one", b"", b" two"], [b"three"], []):
        write_whole(path, contents, is_durable=True)
        assert path.read_bytes() == b"".join(contents)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_only_files_are_replaced(tmp_path: Path) -> None:
    """Root could otherwise replace /dev/null."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="Not a regular file"):
            write_whole(tmp_path / name, [b"one"])
    assert (tmp_path / "pipe").is_fifo()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("mode", [0o600, 0o666])
def test_mode(tmp_path: Path, mode: int) -> None:
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "file", [b"x"], mode=mode)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode & ~0o022


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_nothing_is_left_of_what_fails(tmp_path: Path, error: type[BaseException]) -> None:
    def parts() -> Iterator[bytes]:
        yield b"one"
        raise error("no more")

    (tmp_path / "file").write_bytes(b"before")
    with pytest.raises(error, match="no more"):
        write_whole(tmp_path / "file", parts())
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"]


def test_links_are_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"other")
    (tmp_path / "file").symlink_to(tmp_path / "other")
    write_whole(tmp_path / "file", [b"new"])
    assert not (tmp_path / "file").is_symlink()
    assert (tmp_path / "other").read_bytes() == b"other"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_file_with_the_temporary_name_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(whole_files.secrets, "token_hex", lambda count: "0" * 2 * count)
    guessed = tmp_path / f"file.{'0' * 16}.part"
    (tmp_path / "other").write_bytes(b"other")
    if kind == "link":
        guessed.symlink_to(tmp_path / "other")
    else:
        guessed.write_bytes(b"other")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "file", [b"new"])
    assert guessed.read_bytes() == (tmp_path / "other").read_bytes() == b"other"


def test_the_file_that_a_link_names_is_replaced_when_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"before")
    (tmp_path / "folder" / "inner").symlink_to("file")
    (tmp_path / "link").symlink_to("folder/inner")
    with monkeypatch.context() as failing:
        failing.setattr(Path, "replace", _no_space)
        with pytest.raises(OSError, match="No space left") as error:
            write_file(tmp_path / "link", b"after", is_durable=True)
    assert error.value.filename == str(tmp_path / "link")
    assert (tmp_path / "link").read_bytes() == b"before"
    write_file(tmp_path / "link", b"after", is_durable=True)
    assert (tmp_path / "folder" / "file").read_bytes() == b"after"
    assert (tmp_path / "folder" / "inner").is_symlink()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "inner", "link"]


def _no_space(path: Path, _: Path) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def test_links_without_a_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new")
    write_file(tmp_path / "link", b"x")
    assert (tmp_path / "new").read_bytes() == b"x"
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "cycle").symlink_to("cycle")
    (tmp_path / "nowhere").symlink_to("missing/file")
    for name in ("cycle", "nowhere"):
        with pytest.raises(OSError, match=r"symbolic links|No such file") as error:
            write_file(tmp_path / name, b"x")
        assert error.value.filename == str(tmp_path / name)
        assert (tmp_path / name).is_symlink()


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
def test_an_open_file_is_not_replaced(tmp_path: Path) -> None:
    """/dev/stdout is a link to the file to which a shell has redirected the output."""
    program = "from dalify.base.whole_files import write_file; write_file('/dev/stdout', b'x'); print('y')"
    with (tmp_path / "output").open("ab") as output:
        subprocess.run([sys.executable, "-c", program], stdout=output, check=True)
    assert (tmp_path / "output").read_bytes() == b"xy\n"


def test_links_and_pipes_that_a_user_named_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"longer than before")
    (tmp_path / "link").symlink_to("other")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "other").read_bytes() == b"new"
    write_file(os.devnull, b"nothing")
    with pytest.raises(OSError, match=r"directory|Permission"):
        write_file(tmp_path, b"x")


def test_a_file_that_a_user_named_is_replaced_when_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_file(path, b"before")

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="the disk is full"):
        write_file(path, b"after")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"]


def test_errors_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        write_file(tmp_path / "missing" / "file", b"x")
    assert missing.value.filename == str(tmp_path / "missing" / "file")

    def fill() -> Iterator[bytes]:
        yield b"x"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left") as full:
        write_whole(tmp_path / "file", fill())
    assert full.value.filename == str(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250)
    write_whole(path, [b"x"])
    assert path.read_bytes() == b"x"
