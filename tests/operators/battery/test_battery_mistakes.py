"""Mistakes with every operator: unknown arguments, wrong inputs, unsuitable data and values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import limits
from dalify.base.errors import ArgumentTypeError, DalifyError, OperatorError, UnknownArgumentError
from dalify.registry import COMMON_PARAMETERS, RANDOM_STATE, READER_PARAMETERS, Parameter, catalog
from tests.operators.battery.case import SAMPLES, Case, Data, Each
from tests.operators.battery.run_case import (
    ALL,
    Output,
    assert_same,
    case_of,
    every_operator,
    function_of,
    inputs_of,
    run_case,
)


@every_operator
def test_unknown_argument(name, folder):
    case = case_of(name)
    hidden = {*READER_PARAMETERS, RANDOM_STATE.name}
    known = [item for item in catalog.find(name).parameters if item not in hidden] or list(COMMON_PARAMETERS)
    wrong = max(known, key=len) + "q"
    with pytest.raises(UnknownArgumentError) as caught:
        function_of(name)(*inputs_of(case, ALL, "cpu"), **{wrong: 1})
    assert catalog.find(name).public_name in str(caught.value)
    assert repr(wrong) in str(caught.value)
    assert f"Did you mean {wrong[:-1]!r}" in str(caught.value)


@every_operator
def test_number_of_inputs(name, folder):
    case = case_of(name)
    declared = catalog.find(name).inputs
    required = sum(1 for item in declared if not item.is_optional and not item.is_variadic)
    counts = [required - 1] if required else []
    if not any(item.is_variadic for item in declared):
        positional = sum(1 for item in catalog.find(name).parameters.values() if item.is_positional)
        counts.append(len(declared) + positional + 1)
    given = {key: value for key, value in case.given(folder).items() if not hasattr(value, "values")}
    for count in counts:
        with pytest.raises(ArgumentTypeError) as caught:
            function_of(name)(*[np.zeros((2, 2), np.float32)] * count, **given)
        assert catalog.find(name).public_name in str(caught.value)


HOSTILE = {
    "float64": Data([np.linspace(-5, 300, 60).reshape(4, 5, 3)], "HWC"),
    "bool": Data([np.arange(60).reshape(4, 5, 3) % 3 == 0], "HWC"),
    "no rows": Data([np.zeros((0, 5, 3), np.uint8)], "HWC"),
    "no columns": Data([np.zeros((5, 0, 3), np.uint8)], "HWC"),
    "no channels": Data([np.zeros((5, 4, 0), np.uint8)], "HWC"),
    "one pixel": Data([np.full((1, 1, 3), 200, np.uint8)], "HWC"),
    "one channel": Data([np.arange(20, dtype=np.uint8).reshape(4, 5, 1)], "HWC"),
    "two channels": Data([np.arange(40, dtype=np.uint8).reshape(4, 5, 2)], "HWC"),
    "five channels": Data([np.arange(100, dtype=np.uint8).reshape(4, 5, 5)], "HWC"),
    "planes": Data([np.arange(60, dtype=np.uint8).reshape(3, 4, 5)], "CHW"),
    "unknown letters": Data([np.arange(60, dtype=np.uint8).reshape(4, 5, 3)], "XYZ"),
    "number": Data([np.array(3, np.uint8)]),
    "row": Data([np.arange(7, dtype=np.uint8)]),
    "nothing": Data([np.zeros(0, np.uint8)]),
    "five dimensions": Data([np.arange(48, dtype=np.uint8).reshape(2, 2, 2, 2, 3)], "FDHWC"),
    "six dimensions": Data([np.arange(96, dtype=np.uint8).reshape(2, 2, 2, 2, 2, 3)]),
    "not finite": Data([np.array([[np.nan, np.inf], [-np.inf, 1e38]], np.float32)]),
}


@every_operator
def test_hostile_input(name, folder, gpu):
    """Data that were not meant: a result, the same on both devices, or an error of ours that names the operator."""
    case, found = case_of(name), catalog.find(name)
    if not case.inputs:
        pytest.skip("no inputs")
    failures = []
    for what, data in HOSTILE.items():
        samples = [data.samples[0]] * (SAMPLES + 1)
        hostile = Case(inputs=(Data(samples, data.layout), *case.inputs[1:]), arguments=case.arguments)
        results: list[list[Output] | None] = []
        for device in ("cpu", gpu):
            try:
                results.append(run_case(name, hostile, folder, (0, 1), device=device))
            except DalifyError as error:
                results.append(None)
                if found.public_name not in str(error):
                    failures.append(f"{what}: the message does not name the operator: {error}")
            except Exception as error:
                failures.append(f"{what} on the {device}: {type(error).__name__}: {error}")
        if len(results) == 2 and what != "not finite":  # NaN and infinity may spread to other neighbors
            on_cpu, on_gpu = results
            if on_cpu is None or on_gpu is None:
                if on_cpu is not on_gpu:
                    failures.append(f"{what}: refused on one device only")
            else:
                assert_same(on_gpu, on_cpu, atol=1, rtol=1e-5)
    assert not failures, "\n".join(failures)


WRONG: dict[type, list[Any]] = {
    int: [-1, 0, 5, -(2**31), 2**40],
    float: [-1.0, 0.0, float("nan"), float("inf"), -1e30],
    str: ["", "nonsense"],
}
WRONG_NODES = [np.float32(np.nan), np.float32(-1e30), np.int64(-(2**40)), np.zeros(0, np.float32), np.full((2, 2), -7)]


def _wrong_values(parameter: Parameter) -> list[Any]:
    """Return values that an argument may not be meant to have: one, lists, and values per sample."""
    values = WRONG.get(parameter.element, [-5])
    if parameter.is_list:
        values = [[], values[:2], *([value] * 3 for value in values)]
    return [*values, *(Each([node] * (SAMPLES + 1)) for node in WRONG_NODES if parameter.accepts_node)]


LARGE: dict[type, list[Any]] = {
    int: [10**6, 10**9, 2**31 - 1, 2**63 - 1, 2**63],
    float: [1e9, 1e30, 3e38, float("inf"), 1e-30],
}
LARGE_NODES = [np.int32(2**31 - 1), np.int32(10**6), np.float32(3e38), np.float32(1e-30), np.uint64(2**64 - 1)]


def _large_values(parameter: Parameter) -> list[Any]:
    """Return values that need much memory, and lists with an entry for each frame."""
    values = LARGE.get(parameter.element, [])
    if parameter.is_list:
        values = [[value] * count for value in values for count in (1, 2, 3)]
    nodes = [Each([node] * (SAMPLES + 1)) for node in LARGE_NODES]
    nodes += [Each([np.full((3, 2), node)] * (SAMPLES + 1), "FX") for node in LARGE_NODES[:3]]
    return [*values, *(nodes if parameter.accepts_node else [])]


def _failures(name: str, folder: Path, values_of: Callable[[Parameter], list[Any]]) -> list[str]:
    """Run an operator with each value of each argument; return what came of it other than results and clear errors."""
    case, found = case_of(name), catalog.find(name)
    given = case.given(folder)
    failures: list[str] = []
    for parameter in found.parameters.values():
        # Objects are the user's; some numbers only request large results.
        if parameter.name in READER_PARAMETERS or parameter.element is object or parameter.name == "num_outputs":
            continue
        for value in values_of(parameter):
            hostile = Case(inputs=case.inputs, arguments={**given, parameter.name: value})
            shown = (
                f"{parameter.name}={value.values[0]!r}" if isinstance(value, Each) else f"{parameter.name}={value!r}"
            )
            try:
                run_case(name, hostile, folder, (0, 1))
            except OperatorError as error:
                failures.append(f"{shown}: no error of its own: {error}")
            except DalifyError as error:
                if found.public_name not in str(error):
                    failures.append(f"{shown}: the message does not name the operator: {error}")
                if isinstance(error.__cause__, MemoryError):
                    failures.append(f"{shown}: memory was asked for before the size was checked: {error}")
            except Exception as error:
                failures.append(f"{shown}: {type(error).__name__}: {error}")
    return failures


@every_operator
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_hostile_arguments(name, folder):
    """Arguments that were not meant: a result, or an error of ours that names the operator."""
    failures = _failures(name, folder, _wrong_values)
    assert not failures, "\n".join(failures)


@every_operator
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sizes_of_large_results(name, folder, small_limits):
    """Arguments for large results: a result within the limits, or an error before memory is allocated."""
    failures = _failures(name, folder, _large_values)
    assert not failures, "\n".join(failures)


@pytest.fixture
def small_limits() -> Iterator[None]:
    before = dataclasses.asdict(limits.current())
    limits.configure(max_sample_bytes=1 << 24, max_image_pixels=1 << 22)
    yield
    limits.configure(**before)
