"""Run one operator of dalify on a few arrays, as `run_dali` does with DALI."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

import dalify
from tests.helpers.real_dali import Each, run_dali


def run_dalify(
    name: str, *inputs: Sequence[np.ndarray], layouts: Sequence[str] | str = (), device: str = "cpu", **arguments: Any
) -> Any:
    """Run an operator on one batch; see `run_dali` for the arguments.

    With ``device="gpu"``, inputs are moved to the device, and results to the CPU.
    """
    if isinstance(layouts, str):
        layouts = [layouts] * len(inputs)
    each = [value for value in arguments.values() if isinstance(value, Each)]
    count = len(inputs[0]) if inputs else len(each[0].values) if each else 1

    def source(values: Sequence[np.ndarray], layout: str | None) -> Any:
        data = [np.array(value, order="C") for value in values]
        return dalify.fn.external_source(source=lambda: data, layout=layout or None)

    @dalify.pipeline_def(batch_size=count, num_threads=1, device_id=None if device == "cpu" else 0, seed=1)
    def graph() -> Any:
        operator = functools.reduce(getattr, name.split("."), dalify.fn)
        nodes = [source(values, layouts[i] if layouts else None) for i, values in enumerate(inputs)]
        if device == "gpu":
            nodes = [node.gpu() for node in nodes]
        keywords = {}
        for key, value in arguments.items():
            if isinstance(value, Each):
                keywords[key] = source(value.values, value.layout)
            elif isinstance(value, str) and value != value.lower() and hasattr(dalify.types, value):
                keywords[key] = getattr(dalify.types, value)
            else:
                keywords[key] = value
        result = operator(*nodes, **keywords)
        return tuple(result) if isinstance(result, (list, tuple)) else result

    pipe = graph()
    pipe.build()
    try:
        outputs = tuple([np.array(batch.as_cpu()[i]) for i in range(count)] for batch in pipe.run())
    finally:
        pipe.close()  # waits for the batches that are computed ahead, which may write files
    return outputs[0] if len(outputs) == 1 else outputs


def assert_equals_dali(
    name: str,
    *inputs: Sequence[np.ndarray],
    device: str = "cpu",
    tolerance: float = 0,
    share: float = 1,
    **arguments: Any,
) -> None:
    """Run an operator here and in DALI and compare all outputs: shapes, types, values.

    Args:
        name: name below ``fn``.
        inputs: as for `run_dali`.
        device: device of dalify; DALI runs on the CPU.
        tolerance: maximum absolute difference.
        share: maximum fraction of the elements that differ by more than a millionth.
        arguments: as for `run_dali`, with ``layouts``.
    """
    theirs = run_dali(name, *inputs, **arguments)
    ours = run_dalify(name, *inputs, device=device, **arguments)
    for expected, result in zip(_as_tuple(theirs), _as_tuple(ours), strict=True):
        for one, other in zip(expected, result, strict=True):
            assert one.shape == other.shape
            assert one.dtype == other.dtype
            difference = np.abs(one.astype(np.float64) - other.astype(np.float64))
            assert difference.size == 0 or difference.max() <= tolerance
            assert difference.size == 0 or (difference > 1e-6).mean() <= share


def _as_tuple(outputs: Any) -> tuple[Any, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)
