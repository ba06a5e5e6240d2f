"""Run an operator's case: on dalify in many ways, and on the real DALI."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify.api.functions import make_function
from dalify.data.dtypes import from_numpy
from dalify.pipeline import do_not_convert
from dalify.pipeline.pipeline import parts_of
from dalify.registry import KernelOperator, catalog
from tests.operators.battery.case import SAMPLES, Case, Data, Each
from tests.operators.battery.cases import CASES

Output = tuple[str, list[np.ndarray]]
ALL = tuple(range(SAMPLES))
# Operators with separate tests: inputs need `feed_input`, and the cache follows readers only.
_APART = ("experimental.inputs.", "cache")
NAMES = [
    name
    for name in catalog.names()
    if not name.rpartition(".")[2].startswith("_") and not name.startswith(("_", *_APART))
]
every_operator = pytest.mark.parametrize("name", NAMES)


def has_gpu_kernel(name: str) -> bool:
    """Return whether an operator has a kernel for the device."""
    found = catalog.find(name)
    return isinstance(found, KernelOperator) and "gpu" in found.kernels


def function_of(name: str) -> Callable[..., Any]:
    """Return an operator as a function, also one that users reach only by an expression."""
    return make_function(catalog.find(name), f"fn.{name}")


@contextmanager
def built(graph: Callable[[], Any], *, count: int = SAMPLES, device: str = "cpu", **options: Any) -> Iterator[Any]:
    """Make a pipeline of a function that returns nodes; closed in the end."""
    options = {"num_threads": 1, "seed": 3, "prefetch_queue_depth": 1, **options}
    pipe = dalify.pipeline_def(graph)(batch_size=count, device_id=0 if device == "gpu" else None, **options)
    try:
        pipe.build()
        yield pipe
    finally:
        pipe.close()


def _source(values: Sequence[np.ndarray], layout: str, name: str | None) -> Any:
    first = values[0]
    declared = {"dtype": from_numpy(first.dtype), "ndim": first.ndim, "layout": layout or None}
    if name is not None:
        return dalify.fn.external_source(name=name, **declared)
    return dalify.fn.external_source(source=lambda: values, **declared)


def nodes_of(
    name: str, case: Case, samples: Sequence[int], folder: Path, device: str = "cpu", names: list[str] | None = None
) -> list[Any]:
    """Make the nodes of a case in the current pipeline.

    Args:
        name: of the operator.
        case: what to run.
        samples: their numbers; `SAMPLES` is the odd one.
        folder: for files that the arguments name.
        device: of operator and inputs.
        names: a list that receives the names under which data have to be fed; None: sources give them.
    """
    inputs = inputs_of(case, samples, device, names)
    return results_of(name, case, inputs, samples, folder, device, names)


def inputs_of(case: Case, samples: Sequence[int], device: str, names: list[str] | None = None) -> list[Any]:
    """Make the input nodes of a case."""
    nodes = [_fed(data, samples, names) for data in case.inputs]
    return [node.gpu() for node in nodes] if device == "gpu" else nodes


def results_of(
    name: str,
    case: Case,
    inputs: Sequence[Any],
    samples: Sequence[int],
    folder: Path,
    device: str,
    names: list[str] | None = None,
) -> list[Any]:
    """Use the operator of a case on input nodes."""
    keywords: dict[str, Any] = {
        key: _fed(value, samples, names) if isinstance(value, Each) else value
        for key, value in case.given(folder).items()
    }
    if device == "gpu":
        keywords["device"] = "gpu"
    result = function_of(name)(*inputs, **keywords)
    if isinstance(result, dict):
        return list(result.values())
    return list(result) if isinstance(result, (list, tuple)) else [] if result is None else [result]


def _fed(data: Data | Each, samples: Sequence[int], names: list[str] | None) -> Any:
    values = data.samples if isinstance(data, Data) else data.values
    name = None
    if names is not None:
        name = f"input{len(names)}"
        names.append(name)
    return _source([values[index] for index in samples], data.layout, name)


def fed_values(case: Case, samples: Sequence[int], folder: Path) -> list[list[np.ndarray]]:
    """Return what has to be fed, in the order of the names."""
    each = [data.samples for data in case.inputs]
    each += [value.values for value in case.given(folder).values() if isinstance(value, Each)]
    return [[values[index] for index in samples] for values in each]


def outputs_of(batches: Sequence[Any]) -> list[Output]:
    """Return layout and samples of each output."""
    results = []
    for batch in batches:
        on_cpu = batch.as_cpu()
        results.append((on_cpu.layout(), [np.array(on_cpu.at(index)) for index in range(len(on_cpu))]))
    return results


def run_case(
    name: str,
    case: Case,
    folder: Path,
    samples: Sequence[int] = ALL,
    *,
    device: str = "cpu",
    num_threads: int = 1,
    seconds_per_sample: float = 0.0,
) -> list[Output]:
    """Run a case on dalify.

    Args:
        name: of the operator.
        case: what to run.
        folder: for files.
        samples: their numbers; `SAMPLES` is the odd one.
        device: ``cpu`` or ``gpu``.
        num_threads: of the pipeline.
        seconds_per_sample: what the engine believes each sample takes: 0 for one chunk, much for a chunk per sample.
    """

    def graph() -> Any:
        return tuple(nodes_of(name, case, samples, folder, device))

    with built(do_not_convert(graph), count=len(samples), device=device, num_threads=num_threads) as pipe:
        for state in parts_of(pipe).builder.engine().stages:
            state.seconds_per_sample = seconds_per_sample
        return outputs_of(pipe.run())


def run_case_on_dali(name: str, case: Case, folder: Path, oracle: Any, samples: Sequence[int] = ALL) -> list[Output]:
    """Run a case on the real DALI's CPU operators."""

    def source(data: Data | Each) -> Any:
        values = data.samples if isinstance(data, Data) else data.values
        chosen = [np.array(values[index], order="C") for index in samples]
        return oracle.fn.external_source(lambda: chosen, layout=data.layout or None)

    pipe = oracle.Pipeline(batch_size=len(samples), num_threads=1, device_id=None, prefetch_queue_depth=1, seed=1)
    with pipe:
        keywords = {
            key: source(value) if isinstance(value, Each) else _as_dali(value, oracle)
            for key, value in case.given(folder).items()
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some operators are deprecated there
            result = operator.attrgetter(name)(oracle.fn)(*map(source, case.inputs), **keywords)
        pipe.set_outputs(*(result if isinstance(result, (list, tuple)) else [result]))
    pipe.build()
    return [(batch.layout(), [np.array(batch.at(index)) for index in range(len(batch))]) for batch in pipe.run()]


def _as_dali(value: Any, oracle: Any) -> Any:
    """Translate an enumeration."""
    return getattr(oracle.types, value.name) if isinstance(value, IntEnum) else value


@functools.cache
def typical(name: str, folder: Path) -> list[Output]:
    """The result that the battery compares others with: all samples in one chunk on one thread."""
    return run_case(name, CASES[name], folder)


def case_of(name: str) -> Case:
    """Return the case of an operator."""
    if name not in CASES:
        pytest.skip("no case")
    return CASES[name]


def assert_same(
    ours: Sequence[Output], others: Sequence[Output], *, atol: float = 0, rtol: float = 0, share: float = 0
) -> None:
    """Check that two results have the same outputs: layouts, types, shapes and values.

    Args:
        ours: one result.
        others: the other.
        atol: largest difference.
        rtol: for floats, largest difference relative to the largest value of the sample.
        share: part of the elements that may differ by more.
    """
    assert len(ours) == len(others)
    for (layout, samples), (other_layout, other_samples) in zip(ours, others, strict=True):
        assert layout == other_layout
        assert len(samples) == len(other_samples)
        for one, other in zip(samples, other_samples, strict=True):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            if np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
                continue
            difference = np.abs(one.astype(np.float64) - other.astype(np.float64))
            scale = np.abs(other[np.isfinite(other)]).max(initial=0) if one.dtype.kind == "f" else 0
            allowed = (atol if one.dtype.kind in "iu" else 0) + rtol * float(scale)
            wrong = ~(difference <= allowed)
            assert wrong.mean() <= share, (
                f"largest difference {np.nanmax(difference)}, allowed {allowed}, {wrong.mean():.2%} of elements"
            )
