"""Errors of operators can be caught as those of DALI."""

from __future__ import annotations

import fnmatch
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dalify.registry import catalog
from tests.compatibility.operator_mistakes import CRASHED
from tests.operators.battery.variants import EVERYTHING

# The step between the mistakes that are tested for each operator. All of them take five minutes.
_STRIDE = 1 if EVERYTHING else 12

# By patterns of the names of mistakes: why another class is raised.
_OTHER_CLASSES = {
    "*: nested list": "it is taken like the list that it contains; the error is about the numbers",
    "*: array": "an array is a list of numbers; the error is about the numbers",
    "readers.caffe2 | additional_inputs: negative*": "NotImplementedError without a text in DALI",
    "readers.caffe2 | image_available: *": "NotImplementedError without a text in DALI",
    "readers.webdataset | *ext*": "NotImplementedError without a text in DALI",
}
_OTHER_RESULTS = {
    "segmentation.select_masks | input 1 twice as long": "DALI keeps only the last polygon of a mask",
}
# Mistakes with inputs that DALI does not notice: it reads other numbers than those that were meant.
_REFUSED = {
    "* | input * of one more axis": "DALI reads the numbers without their shape",
    "* | input * of one axis": "DALI reads the numbers without their shape",
    "* | input * of numbers": "DALI reads the numbers without their shape",
    "* | input * empty": "DALI makes a result of nothing",
    "box_encoder | input * twice as long": "there are not as many labels as boxes",
    "* | input 0 of five channels": "colors have three channels",
    "dump_image | input 0 of another layout": "DALI does not look at the layout",
    "grid_mask | input 0 of another layout": "DALI does not look at the layout",
}


def _outcomes(library: str, folder: Path) -> dict[str, dict[str, Any]]:
    (folder / library).mkdir()
    command = [
        sys.executable,
        "-m",
        "tests.compatibility.operator_mistakes",
        library,
        str(folder / library),
        str(_STRIDE),
    ]
    root = Path(__file__).parents[2]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, timeout=1500)
    return json.loads(found.stdout.splitlines()[-1])


def _is_known(name: str, reasons: dict[str, str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in reasons)


@pytest.mark.usefixtures("oracle")
def test_mistakes_with_every_operator(tmp_path):
    """No crash, no foreign exception, the same results, and classes that a program for DALI catches."""
    theirs, ours = _outcomes("nvidia.dali", tmp_path), _outcomes("dalify", tmp_path)
    assert ours.keys() == theirs.keys()
    assert len(ours) > 1000
    failures = []
    for name, one in ours.items():
        other = theirs[name]
        operator, _, label = name.partition(" | ")
        if CRASHED in one:
            if one[CRASHED] != -signal.SIGALRM:  # much work on a slow machine is no mistake
                failures.append(f"{name}: the process ended with {one[CRASHED]}")
        elif CRASHED in other:
            continue
        elif "classes" in one and "classes" in other:
            argument = label.partition(":")[0]
            is_ours = "is not defined for operator" in other["text"] and argument in catalog.find(operator).parameters
            if other["classes"][0] not in one["classes"] and not is_ours and not _is_known(name, _OTHER_CLASSES):
                failures.append(f"{name}: {other['classes'][0]} in DALI, here {one['classes'][0]}: {one['text']}")
        elif "classes" in one and ":" not in label:  # of other values, DALI makes something: True of any string
            if not _is_known(name, _REFUSED):
                failures.append(f"{name}: DALI takes it: {one['text']}")
        elif (
            "results" in one
            and "results" in other
            and one["results"] != other["results"]
            and not _is_known(name, _OTHER_RESULTS)
        ):
            failures.append(f"{name}: {one['results']}, in DALI {other['results']}")
    assert not failures, "\n".join(failures)
