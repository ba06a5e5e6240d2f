"""Runs and resets of a pipeline, and results that can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain(outputs: Any) -> list[Any]:
    """Return the outputs in a form that can be compared: layout, and type and values of each sample."""
    result = []
    for batch in outputs:
        samples = [np.array(batch.at(index)) for index in range(len(batch))]
        result.append((batch.layout(), [(sample.dtype.str, sample.tolist()) for sample in samples]))
    return result


def steps_of(pipe: Any, steps: str) -> list[Any]:
    """Run (`r`) and reset (`0`) a pipeline; return the result of each run."""
    seen: list[Any] = []
    for step in steps:
        if step == "0":
            pipe.reset()
            continue
        try:
            seen.append(plain(pipe.run()))
        except StopIteration:
            seen.append("end")
    return seen
