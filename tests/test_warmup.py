"""Kernels compiled ahead of time: the output; the first batch then compiles no kernel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from dalify import warmup
from dalify.formats.files import file_list
from dalify.formats.files.paths import join_paths

PROJECT = Path(__file__).parent.parent

PROGRAM = """
import numpy as np
from dalify import fn, pipeline_def

@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def brighter():
    return fn.brightness(fn.external_source(lambda: [np.zeros((4, 5, 3), np.uint8)] * 2), brightness=1.5)

@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def of_folder(folder, *, size=3):
    return fn.readers.file(file_root=folder)[0]

def no_pipeline():
    return 3
"""


@pytest.mark.parametrize("group", ["classification", "augmentation", "detection", "speech", "volumes"])
def test_common_pipelines_run(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert warmup.main([group]) == 0
    assert re.fullmatch(rf"{group}: \d+ functions compiled, [\d.]+ s\n", capsys.readouterr().out)


def test_files_are_read_in_one_call_as_in_large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk of one sample is read without the compiled functions."""
    sizes: list[int] = []

    def join(names: Any, prefixes: Any, numbers: Any, folders: Any) -> Any:
        sizes.append(len(numbers))
        return join_paths(names, prefixes, numbers, folders)

    monkeypatch.setattr(file_list, "join_paths", join)
    warmup.warm_up("classification")
    assert sizes
    assert min(sizes) > 1


def test_compiled_functions_are_not_compiled_again(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT),
        "NUMBA_CACHE_DIR": str(tmp_path / "kernels"),
        "NUMBA_OPT": "1",  # other code than that cached next to the source
    }
    counts = []
    for _ in range(2):
        result = subprocess.run(
            [sys.executable, "-m", "dalify.warmup", "program:brighter"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        counts.append(int(result.stdout.split()[1]))
    assert counts[0] > 0
    assert counts[1] == 0


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_group", "neither module:function nor one of classification"),
        ("no_such_module:function", "No module named 'no_such_module'"),
        ("program:no_such_function", "no_such_function"),
        ("program:no_pipeline", "got int"),
        ("program:np", "must be a function; it is module"),
        ("program:of_folder", "missing a required argument: 'folder'"),
    ],
)
def test_mistakes_are_named(
    target: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "program", raising=False)
    assert warmup.main([target]) == 1
    assert message in capsys.readouterr().err
