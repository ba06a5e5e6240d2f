"""torchvision, and DALI's module on the CPU."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

import pytest
import torch

from tests.helpers.torchvision_import import import_torchvision


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """``torchvision.transforms.v2``."""
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed; see CONTRIBUTING.md")
    return import_torchvision("torchvision.transforms.v2")


@pytest.fixture
def theirs(oracle: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """DALI's module. With a CUDA build of torch it creates CUDA streams, also on machines without a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(importlib.import_module("nvidia.dali.types"), "_get_default_stream_for_array", lambda _: None)
    importlib.import_module("nvidia.dali.experimental.torchvision.v2.functional")
    return importlib.import_module("nvidia.dali.experimental.torchvision")
