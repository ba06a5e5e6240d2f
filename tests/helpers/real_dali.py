"""Run one operator of the real DALI on a few arrays: the oracle of the parity tests."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest


class Each:
    """An argument with one value per sample."""

    def __init__(self, values: Sequence[Any], layout: str | None = None) -> None:
        self.values = [np.array(value, order="C") for value in values]
        self.layout = layout

    def __repr__(self) -> str:
        """Return the values: test ids contain them, and must be equal in every worker process."""
        return f"Each({[value.tolist() for value in self.values]})"


def run_dali(name: str, *inputs: Sequence[np.ndarray], layouts: Sequence[str] | str = (), **arguments: Any) -> Any:
    """Run an operator on the CPU, on one batch.

    Args:
        name: name below ``fn``.
        inputs: one list of samples for each positional input.
        layouts: one layout per input, or one for all.
        arguments: constants, or `Each` for per-sample values. Enumerations such as dtype may be strings ("FLOAT").

    Returns:
        A list of arrays, or a tuple of lists if the operator has several outputs.
    """
    dali = pytest.importorskip("nvidia.dali", reason="the real DALI is not installed; see CONTRIBUTING.md")
    fn = pytest.importorskip("nvidia.dali.fn")
    if isinstance(layouts, str):
        layouts = [layouts] * len(inputs)
    each = [value for value in arguments.values() if isinstance(value, Each)]
    count = len(inputs[0]) if inputs else len(each[0].values) if each else 1

    def source(values: Sequence[np.ndarray], layout: str | None) -> Any:
        data = [np.array(value, order="C") for value in values]
        return fn.external_source(source=lambda: data, layout=layout or None)

    @dali.pipeline_def(batch_size=count, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def graph() -> Any:
        operator = functools.reduce(getattr, name.split("."), fn)
        nodes = [source(values, layouts[i] if layouts else None) for i, values in enumerate(inputs)]
        keywords = {}
        for key, value in arguments.items():
            if isinstance(value, Each):
                keywords[key] = source(value.values, value.layout)
            elif isinstance(value, str) and value != value.lower() and hasattr(dali.types, value):
                keywords[key] = getattr(dali.types, value)
            else:
                keywords[key] = value
        result = operator(*nodes, **keywords)
        return tuple(result) if isinstance(result, (list, tuple)) else result

    pipe = graph()
    pipe.build()
    outputs = tuple([np.array(batch[i]) for i in range(count)] for batch in pipe.run())
    return outputs[0] if len(outputs) == 1 else outputs
