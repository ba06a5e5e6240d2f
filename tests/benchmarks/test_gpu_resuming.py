"""``python -m benchmarks gpu`` after a failure of the device: it ends, and ``--resume`` continues after it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu
from benchmarks.common import Options


def test_a_failed_measurement_is_skipped_when_resuming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    is_usable = True

    def measured(name: str, *_: Any) -> dict[str, float]:
        nonlocal is_usable
        calls.append(name)
        if name == "kernels":
            is_usable = False
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return {name: 1.0}

    monkeypatch.setattr(gpu, "_workloads", lambda *_: {"ResNet-50 training": None})
    monkeypatch.setattr(gpu, "_contenders", lambda *_: [])
    monkeypatch.setattr(gpu, "compare", lambda *_: {})
    monkeypatch.setattr(gpu, "_during_training", partial(measured, "cost"))
    monkeypatch.setattr(gpu, "bandwidths", partial(measured, "kernels"))
    monkeypatch.setattr(gpu, "_differences", partial(measured, "differences"))
    monkeypatch.setattr(gpu, "_copies", partial(measured, "copies"))
    monkeypatch.setattr(gpu, "_shares", lambda *_: measured("shares"))
    monkeypatch.setattr(gpu, "_is_usable", lambda: is_usable)
    path = tmp_path / "figures.json"
    with pytest.raises(SystemExit) as caught:
        gpu.main(Options(is_smoke=True, json=path))
    assert caught.value.code == 3
    assert calls == ["cost", "kernels"]
    is_usable = True
    gpu.main(Options(is_smoke=True, json=path, resumes=True))
    assert calls == ["cost", "kernels", "differences", "copies", "shares"]
    figures = json.loads(path.read_text())
    assert figures["cost during training"] == {"cost": 1.0}
    assert figures["copies"] == {"copies": 1.0}
    assert "kernels" not in figures
