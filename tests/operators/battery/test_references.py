"""Operators compared with Pillow, OpenCV, SciPy or their formula in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.operators.battery.case import SAMPLES, Each
from tests.operators.battery.cases import CASES
from tests.operators.battery.run_case import ALL, NAMES, Output, assert_same, case_of, run_case


def reference_of(name: str, folder: Path) -> list[Output]:
    """Return the reference's results for an operator's case, the sample of another shape last."""
    case = case_of(name)
    reference = case.reference
    assert reference is not None
    outputs: list[list[np.ndarray]] = []
    for index in (*ALL, SAMPLES) if case.inputs else ALL:
        given: dict[str, Any] = {
            key: value.values[index] if isinstance(value, Each) else value for key, value in case.given(folder).items()
        }
        result = reference.function(*(data.samples[index] for data in case.inputs), **given)
        results = result if isinstance(result, tuple) else (result,)
        outputs = outputs or [[] for _ in results]
        for samples, sample in zip(outputs, results, strict=True):
            samples.append(np.asarray(sample))
    return [("", samples) for samples in outputs]


@pytest.mark.parametrize("name", [name for name in NAMES if name in CASES and CASES[name].reference])
def test_reference(name: str, folder: Path) -> None:
    case = case_of(name)
    reference = case.reference
    assert reference is not None
    ours = run_case(name, case, folder, (*ALL, SAMPLES) if case.inputs else ALL)
    bare = [("", samples) for _, samples in ours]
    assert_same(bare, reference_of(name, folder), atol=reference.atol, rtol=reference.rtol, share=reference.share)
