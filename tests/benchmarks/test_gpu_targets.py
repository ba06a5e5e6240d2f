"""Bandwidths and the table of targets of ``python -m benchmarks gpu``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.autograd import DeviceType

from benchmarks import gpu_kernels
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


@pytest.mark.parametrize(
    ("on_device", "by_clock", "expected"),
    [
        ((0.003, 0.0), (), 0.003),  # the pipeline without the operator launches no kernels
        ((0.003, 0.001), (), 0.002),
        ((0.0, 0.0), (0.005, 0.001), 0.004),  # the profiler records no kernels
        ((0.001, 0.003), (), -0.002),
    ],
)
def test_time_of_a_kernel(
    on_device: tuple[float, ...], by_clock: tuple[float, ...], expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    times, clocks = iter(on_device), iter(by_clock)
    monkeypatch.setattr(gpu_kernels, "_device_seconds", lambda *_: next(times))
    monkeypatch.setattr(gpu_kernels, "seconds", lambda *_: next(clocks))
    images = torch.zeros((2, 3, 4, 3), dtype=torch.uint8)
    duration, size = gpu_kernels._measured(lambda fn, x: fn.flip(x), images, 1, "cuda")
    assert duration == pytest.approx(expected)
    assert size == 2 * images.nbytes


@pytest.mark.parametrize(
    ("duration", "ratio"), [(0.002, 0.5), (0.001, 1.0), (0.0008, None), (1e-9, None), (0.0, None), (-0.002, None)]
)
def test_implausible_bandwidths_are_not_reported(duration: float, ratio: float | None) -> None:
    found = gpu_kernels._ratio(duration, 1000, 1e6)
    assert found == (None if ratio is None else pytest.approx(ratio))


def test_an_unmeasurable_target_is_not_met(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    kernels = {"copy": 4000.0, "crop_mirror_normalize": {"triton": None, "torch": 4000.0}}
    found = lines({"device": "cuda", "kernels": kernels}, capsys)
    assert found["crop_mirror_normalize"][-2:] == ["not measurable", ""]


def test_time_of_kernels_is_not_counted_again_as_that_of_their_launches() -> None:
    """Torch's profiler may attribute it to both."""
    kernel = SimpleNamespace(key="_resample", device_type=DeviceType.CUDA, self_device_time_total=7.0)
    launch = SimpleNamespace(key="cudaLaunchKernel", device_type=DeviceType.CPU, self_device_time_total=7.0)
    measured: Any = SimpleNamespace(key_averages=lambda: [launch, kernel])
    assert gpu_kernels.device_events(measured) == [kernel]
