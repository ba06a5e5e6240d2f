"""The stubs are up to date, and pyright finds the operators in them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from docs import dynamic_stubs
from docs.stubs import PACKAGE, files

PROGRAM = """
import numpy as np

import dalify.experimental.dynamic as ndd
from dalify import eager, fn, ops, types

encoded, labels = fn.readers.file(file_root="photos", random_shuffle=True, name="photos")
images = fn.decoders.image(encoded, device="mixed")
resized = fn.resize(images, size=224, interp_type=types.INTERP_CUBIC)
turned = fn.rotate(images, angle=fn.random.uniform(range=(-10, 10)), fill_value=0)
moved = fn.warp_affine(images, fn.transforms.rotation(angle=30), dtype=types.FLOAT)
flip = ops.Flip(horizontal=1)
mirrored = flip(images)
reveal_type(turned)
reveal_type(mirrored)
wrong = fn.resize(images, sice=224)
unknown = fn.rezise(images)
text = fn.rotate(images, angle="much")
photo = eager.decoders.image(b"bytes")
eager.rotate(photo, angle=np.float32(45), layout="HWC")
batch = eager.batch([photo, photo], "HWC")
misspelt = eager.rotate(photo, angle=45, interp=1)
reader = ndd.readers.File(file_root="photos", random_shuffle=True)
for files, numbers in reader.next_epoch(batch_size=8):
    angles = ndd.random.uniform(range=(-10, 10), rng=ndd.random.RNG(seed=1), batch_size=8)
    rotated = ndd.rotate(ndd.decoders.image(files, device="gpu"), angle=angles, keep_size=True)
    doubled: ndd.Batch = ndd.cast(rotated, dtype=ndd.float32) * 2
unheard = ndd.flip(photo, horizontol=1)
unread = ndd.readers.File(file_rot="photos")
"""


def test_stubs_are_up_to_date() -> None:
    made = {**files(), **dynamic_stubs.files()}
    for path, text in made.items():
        assert path.exists(), "run: make docs"
        assert path.read_text(encoding="utf-8") == text, f"{path}; run: make docs"
    folders = [*(PACKAGE / kind for kind in ("fn", "ops", "eager")), dynamic_stubs.ROOM]
    assert {path for folder in folders for path in folder.rglob("*.pyi")} == set(made), "run: make docs"


def test_pyright_knows_operators(tmp_path: Path) -> None:
    """Arguments accept values and nodes; an unknown argument or operator and a wrong type are errors."""
    pytest.importorskip("pyright")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "standard"}), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", "."]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = json.loads(result.stdout)["generalDiagnostics"]
    revealed = [item["message"] for item in told if item["severity"] == "information"]
    assert len(revealed) == 2
    assert all("DataNode" in message for message in revealed)
    lines = PROGRAM.splitlines()
    wrong = [lines[item["range"]["start"]["line"]] for item in told if item["severity"] == "error"]
    assert [line.partition(" ")[0] for line in wrong] == ["wrong", "unknown", "text", "misspelt", "unheard", "unread"]
