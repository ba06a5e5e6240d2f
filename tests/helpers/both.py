"""Run one function of many operators on dalify and on the real DALI, in one pipeline each, and compare all outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import dalify

Graph = Callable[..., Sequence[Any]]
Result = tuple[str, list[np.ndarray]]


def run_here(
    graph: Graph, *inputs: Sequence[Any], layouts: Sequence[str] | str = "", device: str = "cpu"
) -> list[Result]:
    """Run a function on dalify.

    Args:
        graph: called with the package and one node per input; returns nodes.
        inputs: the samples of each input.
        layouts: layout of all inputs, or one per input.
        device: the inputs are moved to this device first.

    Returns:
        Layout and samples of each output.
    """
    pipe = dalify.Pipeline(
        batch_size=len(inputs[0]),
        num_threads=2,
        device_id=None if device == "cpu" else 0,
        prefetch_queue_depth=1,
        seed=1,
    )
    with pipe:
        nodes = _sources(dalify, inputs, layouts)
        if device == "gpu":
            nodes = [node.gpu() for node in nodes]
        pipe.set_outputs(*graph(dalify, *nodes))
    return [_result(batch.as_cpu()) for batch in pipe.run()]


def run_both(
    graph: Graph, *inputs: Sequence[Any], layouts: Sequence[str] | str = "", device: str = "cpu"
) -> list[tuple[Result, Result]]:
    """Return the results of dalify and DALI for each output."""
    oracle = pytest.importorskip("nvidia.dali", reason="the real DALI is not installed; see CONTRIBUTING.md")
    pytest.importorskip("nvidia.dali.fn")
    pytest.importorskip("nvidia.dali.math")
    pipe = oracle.Pipeline(batch_size=len(inputs[0]), num_threads=1, device_id=None, prefetch_queue_depth=1, seed=1)
    with pipe:
        pipe.set_outputs(*graph(oracle, *_sources(oracle, inputs, layouts)))
    pipe.build()
    theirs = [_result(batch) for batch in pipe.run()]
    ours = run_here(graph, *inputs, layouts=layouts, device=device)
    return list(zip(ours, theirs, strict=True))


def _sources(package: Any, inputs: Sequence[Sequence[Any]], layouts: Sequence[str] | str) -> list[Any]:
    each = [layouts] * len(inputs) if isinstance(layouts, str) else layouts
    return [
        _source(package, [np.array(sample) for sample in samples], layout)
        for samples, layout in zip(inputs, each, strict=True)
    ]


def _source(package: Any, samples: list[np.ndarray], layout: str) -> Any:
    return package.fn.external_source(lambda: samples, layout=layout or None)


def _result(batch: Any) -> Result:
    return batch.layout(), [np.array(batch.at(index)) for index in range(len(batch))]


def assert_same_as_dali(
    graph: Graph,
    *inputs: Sequence[Any],
    layouts: Sequence[str] | str = "",
    device: str = "cpu",
    rtol: float = 0,
    atol: float = 0,
) -> None:
    """Check that values, shapes, types and layouts of all outputs are equal to those of DALI."""
    for number, (ours, theirs) in enumerate(run_both(graph, *inputs, layouts=layouts, device=device)):
        name = f"output {number}"
        assert ours[0] == theirs[0], f"{name}: layout"
        for one, other in zip(ours[1], theirs[1], strict=True):
            assert one.dtype == other.dtype, name
            assert one.shape == other.shape, name
            np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=name)
