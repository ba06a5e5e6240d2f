"""Mistakes on the command line of ``python -m benchmarks``: a short message, and exit status 2."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main


def message_of(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("name", ["operators", "readers", "modes", "resnet_training"])
@pytest.mark.parametrize("count", [0, 3])
def test_too_few_files(
    name: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cat").mkdir()
    for number in range(count):
        (tmp_path / "cat" / f"{number}.jpg").write_bytes(b"not read")
    (tmp_path / "other.jpg").write_bytes(b"not in a class folder")
    message = message_of([name, "--smoke", "--data", str(tmp_path)], monkeypatch, capsys)
    assert f"at least 64 JPEG files named CLASS/NAME.jpg in this folder; there are {count}\n" in message
    assert message.startswith(f"python -m benchmarks: --data {tmp_path}")


@pytest.mark.parametrize(
    ("name", "only", "expected"),
    [
        ("scaling", "resnet_training,ssd", "resnet_training; there are training"),
        ("image_formats", "bmp,tiff", "tiff; there are jpg, png"),
    ],
)
def test_unknown_selection(
    name: str, only: str, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message = message_of([name, "--smoke", "--only", only], monkeypatch, capsys)
    assert message.startswith(f"python -m benchmarks: {name}: --only does not know {expected}")


def test_unknown_benchmark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert "unknown: resnet; there are resnet_training," in message_of(["resnet"], monkeypatch, capsys)
