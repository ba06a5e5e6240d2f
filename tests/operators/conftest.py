"""Fixtures of the battery."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for files that arguments name."""
    return tmp_path_factory.mktemp("cases")


@pytest.fixture(autouse=True)
def working_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some operators write to the working folder, which is not to be that of the project."""
    monkeypatch.chdir(tmp_path_factory.getbasetemp())
