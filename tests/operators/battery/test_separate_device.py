"""Kernels of the accelerator mix no tensors of host and device, and wait only where the documentation says so."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.operators.battery.cases import CASES
from tests.operators.battery.run_case import NAMES, has_gpu_kernel
from tests.operators.battery.separate_device import is_possible

PROJECT = Path(__file__).parents[3]
FAILED = "error @ dalify.base.errors.OperatorError"


@pytest.mark.skipif(not is_possible(), reason="this torch cannot register a device in Python")
def test_kernels_use_memory_of_one_side() -> None:
    with_gpu = [name for name in NAMES if has_gpu_kernel(name)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.operators.battery.separate_device", *with_gpu],
        cwd=PROJECT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, dict[str, list[str]]] = json.loads(done.stdout)
    assert len(found) > 100
    # No device accepts some variants. A kernel that needs a value of the device fails. The user may want float64.
    refused = re.compile(r"float64 @ (data|executor)/|error @ dalify\.base\.errors\.(?!OperatorError)")
    waits = {name: {note for note in notes if not refused.match(note)} for name, notes in found.items()}
    expected = {name: [*CASES[name].waits] if name in CASES else [] for name in found}  # others are conditions
    waits = {name: notes - {FAILED} if expected[name] else notes for name, notes in waits.items()}
    assert {name: sorted(notes) for name, notes in waits.items()} == expected
