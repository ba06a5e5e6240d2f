"""Triton kernels run on a GPU where torch finds one, otherwise in Triton's interpreter on the CPU."""

from __future__ import annotations

import importlib.util

import pytest
import torch


@pytest.fixture(autouse=True)
def triton_device(monkeypatch: pytest.MonkeyPatch) -> str:
    """Let GPU pipelines run Triton kernels; return the device."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed: pip install 'dalify[triton]'")
    if torch.cuda.is_available():
        return "cuda"
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    monkeypatch.setenv("DALIFY_EMULATED_KERNELS", "torch")  # what Triton does not support
    return "cpu"
