"""Identities of files, and their states."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dalify.formats.files.identity import file_identity


def test_path_place_and_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"123")
    key, state = file_identity(str(path))
    assert file_identity(str(path)) == (key, state)
    monkeypatch.chdir(tmp_path)
    assert file_identity("a") == (key, state)  # wherever a program is started
    assert file_identity(str(path), 1)[0] != key
    assert file_identity(str(path), 1, 2)[0] != file_identity(str(path), 12)[0]
    path.write_bytes(b"1234")
    assert file_identity(str(path))[0] == key
    assert file_identity(str(path))[1] != state
    before = file_identity(str(path))
    os.utime(path, ns=(5, 5))
    assert file_identity(str(path))[1] != before[1]


def test_absent_files() -> None:
    with pytest.raises(OSError, match="nothing"):
        file_identity("/nothing/here")


def test_urls() -> None:
    assert file_identity("https://example.org/a", 3) == ("https://example.org/a\x003", "")
