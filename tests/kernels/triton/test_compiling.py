"""The real compiler accepts every kernel, for NVIDIA and for AMD; no GPU is needed for that."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def

PROJECT = Path(__file__).parents[3]


def test_every_kernel_compiles_for_both_vendors_and_rounds_like_the_cpu(tmp_path: Path) -> None:
    # With a separate cache, so that the compiler runs again.
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.triton.compile_kernels"],
        cwd=PROJECT, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    made = {tuple(line.split()) for line in done.stdout.splitlines()}
    sources = [path.read_text() for path in PROJECT.glob("dalify/kernels/triton/*.py")]
    launched = {name for text in sources for name in re.findall(r"launch\(\s*(_\w+),", text)}
    assert made == {(name, kind, "True") for name in launched for kind in ("cubin", "hsaco")}


def test_nothing_loads_triton_before_it_is_needed() -> None:
    program = (
        "import sys, numpy, dalify, dalify.fn as fn\n"
        "from dalify import eager\n"
        "eager.resize(numpy.ones((4, 4, 3), numpy.uint8), size=(2, 2))\n"
        "print([name for name in sys.modules if name == 'triton' or name.startswith('dalify.kernels.triton.')])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("value", ["0", "off"])
def test_explain_says_which_kernels_run(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline() -> Any:
        return fn.resize(fn.external_source(source=lambda: [np.ones((4, 4, 3), np.uint8)], layout="HWC").gpu(), size=2)

    explained = pipeline().explain()
    assert "Triton kernels, or torch kernels where they do not support the arguments: resize" in explained
    monkeypatch.setenv("DALIFY_TRITON", value)
    assert "torch kernels: resize (DALIFY_TRITON switches Triton off)" in pipeline().explain()


@pytest.mark.parametrize("elements", [128, 1024])
def test_kernels_are_compiled_for_few_forms_of_tiles(elements: int) -> None:
    launching = importlib.import_module("dalify.kernels.triton.launching")
    forms: set[tuple[int, int]] = set()
    for rows, columns in 2 ** np.random.default_rng(3).integers(0, 12, (500, 2)):
        height, width, tiles = launching.blocks_of(np.array([1, rows]), np.array([columns, 1]), elements)
        forms.add((height, width))
        assert height * width <= elements
        assert tiles >= max(-(-rows // height), -(-columns // width))
    assert len(forms) <= elements.bit_length()
