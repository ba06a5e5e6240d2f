"""Triton kernels run on a GPU if torch finds one, otherwise in Triton's interpreter on the CPU."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from dalify.kernels.dispatch import reason_against


@pytest.fixture(autouse=True)
def triton_device(monkeypatch: pytest.MonkeyPatch) -> str:
    """Make GPU pipelines run Triton kernels; return the device."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed: pip install 'dalify[triton]'")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        monkeypatch.setenv("DALIFY_DEVICE", "cpu")
        monkeypatch.setenv("DALIFY_EMULATED_KERNELS", "torch")  # what Triton does not support
    assert reason_against(device) is None  # the first call launches a kernel, which tests would count
    return device
