"""The table of targets at the end of ``python -m benchmarks gpu``."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.gpu import print_targets

TRAINING = "ResNet-50 training"


def lines(figures: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """Return the cells of each row by name."""
    print_targets(figures)
    rows = [line.strip().strip("│").split("│") for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


@pytest.mark.parametrize(
    ("rate", "cost", "verdicts"),
    [(12_000.0, 0.029, ("met", "met")), (11_999.0, 0.03, ("missed", "missed"))],
)
def test_targets_are_compared_with_what_was_measured(
    rate: float,
    cost: float,
    verdicts: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    figures = {
        "device": "cuda",
        TRAINING: {"dalify, host decoding, 16 threads": 9_500.0, "dalify, mixed decoding, 16 threads": rate},
        "cost during training": {"mixed": cost},
        "kernels": {"copy": 4000.0, "crop_mirror_normalize": {"triton": 2500.0, "torch": 100.0}},
    }
    found = lines(figures, capsys)
    assert found[f"{TRAINING}, mixed decoding"][-1] == verdicts[0]
    assert found[f"{TRAINING}, host decoding"][-2:] == ["9,500", "met"]
    assert found["cost during a training step of 20 ms, mixed decoding"][-1] == verdicts[1]
    assert found["cost during a training step of 20 ms, host decoding"][-2:] == ["not measured", ""]
    assert found["crop_mirror_normalize"][-2:] == ["0.625", "met"]
    assert found["resize, antialiased"][-2] == "not measured"
    found = lines({**figures, "device": None}, capsys)
    assert found[f"{TRAINING}, host decoding"][-1] == "emulation"
