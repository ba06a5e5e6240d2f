"""If Triton does not work on a device, operators run torch kernels, and `explain()` contains the reason."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.kernels import dispatch


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[..., None]], None]]:
    """Return a function that installs a Triton whose kernels do what a function does."""
    pytest.importorskip("torch")
    package = ModuleType("triton")
    package.__spec__ = ModuleSpec("triton", None)
    monkeypatch.setitem(sys.modules, "triton", package)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    dispatch._why_not.cache_clear()

    def install(function: Callable[..., None]) -> None:
        kernels: Any = ModuleType("dalify.kernels.triton.pointwise")
        kernels.saturate_cast_samples = function
        monkeypatch.setitem(sys.modules, kernels.__name__, kernels)

    yield install
    dispatch._why_not.cache_clear()


def _without_compiler(out: Any, x: Any) -> None:
    raise RuntimeError("Failed to find C compiler.\nPlease specify one via CC.")


def _wrong(out: Any, x: Any) -> None:
    out.block.fill_(7)


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (_without_compiler, "Triton does not work: Failed to find C compiler."),
        (_wrong, "Triton does not work: it converts numbers wrongly"),
    ],
)
def test_torch_kernels_run_if_the_trial_fails(
    kernel: Callable[..., None], reason: str, trial: Callable[[Callable[..., None]], None]
) -> None:
    trial(kernel)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline() -> Any:
        x = fn.external_source(source=lambda: [np.arange(5, dtype=np.uint8)], layout="W")
        return fn.cast(x.gpu(), dtype=types.FLOAT)

    built = pipeline()
    (output,) = built.run()
    np.testing.assert_array_equal(np.asarray(output.as_cpu()[0]), np.arange(5, dtype=np.float32))
    assert f"kernels: cast ({reason})" in built.explain()


def test_the_trial_runs_once_when_the_first_pipeline_is_built(trial: Callable[[Callable[..., None]], None]) -> None:
    calls: list[int] = []

    def kernel(out: Any, x: Any) -> None:
        calls.append(len(x.block))
        out.block.copy_(x.block)

    trial(kernel)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipeline() -> Any:
        x = fn.external_source(source=lambda: [np.arange(5, dtype=np.uint8)], layout="W")
        return fn.cast(x.gpu(), dtype=types.FLOAT)

    for _ in range(2):
        built = pipeline()
        built.build()
        assert calls == [4]
        assert "Triton kernels, or torch kernels where they do not support the arguments: cast" in built.explain()
