"""The stubs declare every operator, and pyright finds the operators in them."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dalify import fn, ops
from dalify.registry.schema import pascal_case
from docs.signatures import public_names
from docs.stubs import PACKAGE, files, write

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


def declared(text: str) -> set[str]:
    """Return the functions and classes of a stub."""
    return {node.name for node in ast.parse(text).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


@pytest.mark.parametrize(("kind", "module"), [("fn", fn), ("ops", ops)])
def test_stubs_declare_every_operator_in_its_namespace(kind: str, module: object) -> None:
    made = files()
    for name in public_names():
        *spaces, own = name.split(".")
        spelled = own if kind == "fn" else pascal_case(own)
        assert spelled in declared(made[Path(kind, *spaces, "__init__.pyi")])
        found = module
        for part in (*spaces, spelled):
            found = getattr(found, part)
        assert callable(found)


def test_every_stub_is_valid_python() -> None:
    for path, text in files().items():
        assert path.name == "__init__.pyi"
        assert ast.get_docstring(ast.parse(text))


def test_stubs_of_removed_namespaces_are_removed(tmp_path: Path) -> None:
    old = tmp_path / "fn" / "removed" / "__init__.pyi"
    old.parent.mkdir(parents=True)
    old.touch()
    write(tmp_path)
    assert {path.relative_to(tmp_path) for path in tmp_path.rglob("*.pyi")} == set(files())


def test_pyright_knows_operators(tmp_path: Path) -> None:
    """Arguments accept values and nodes; an unknown argument or operator and a wrong type are errors."""
    pytest.importorskip("pyright")
    shutil.copytree(PACKAGE, tmp_path / "dalify", ignore=shutil.ignore_patterns("__pycache__", "*.pyi", "*.nb?"))
    write(tmp_path / "dalify")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"typeCheckingMode": "standard", "include": ["program.py"]}), encoding="utf-8"
    )
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", "."]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = json.loads(result.stdout)["generalDiagnostics"]
    revealed = [item["message"] for item in told if item["severity"] == "information"]
    assert len(revealed) == 2
    assert all("DataNode" in message for message in revealed)
    lines = PROGRAM.splitlines()
    wrong = [lines[item["range"]["start"]["line"]] for item in told if item["severity"] == "error"]
    assert [line.partition(" ")[0] for line in wrong] == ["wrong", "unknown", "text", "misspelt", "unheard", "unread"]
