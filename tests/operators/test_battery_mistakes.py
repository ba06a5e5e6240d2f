"""What every operator makes of mistakes: unknown arguments, wrong inputs, data and values that were not meant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dalify.base.errors import ArgumentTypeError, DalifyError, UnknownArgumentError
from dalify.registry import COMMON_PARAMETERS, READER_PARAMETERS, Parameter, catalogue
from tests.operators.cases import SAMPLES, Case, Data, Each
from tests.operators.run_case import (
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
    known = [item for item in catalogue.find(name).parameters if item not in READER_PARAMETERS] or list(
        COMMON_PARAMETERS
    )
    wrong = max(known, key=len) + "q"
    with pytest.raises(UnknownArgumentError) as caught:
        function_of(name)(*inputs_of(case, ALL, "cpu"), **{wrong: 1})
    assert catalogue.find(name).public_name in str(caught.value)
    assert repr(wrong) in str(caught.value)
    assert f"Did you mean {wrong[:-1]!r}" in str(caught.value)


@every_operator
def test_number_of_inputs(name, folder):
    case = case_of(name)
    declared = catalogue.find(name).inputs
    required = sum(1 for item in declared if not item.is_optional and not item.is_variadic)
    counts = [required - 1] if required else []
    if not any(item.is_variadic for item in declared):
        positional = sum(1 for item in catalogue.find(name).parameters.values() if item.is_positional)
        counts.append(len(declared) + positional + 1)
    given = {key: value for key, value in case.given(folder).items() if not hasattr(value, "values")}
    for count in counts:
        with pytest.raises(ArgumentTypeError) as caught:
            function_of(name)(*[np.zeros((2, 2), np.float32)] * count, **given)
        assert catalogue.find(name).public_name in str(caught.value)


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
    case, found = case_of(name), catalogue.find(name)
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
        if len(results) == 2 and what != "not finite":  # NaN and infinity may spread to other neighbours
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


@every_operator
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_hostile_arguments(name, folder):
    """Arguments that were not meant: a result, or an error of ours that names the operator."""
    case, found = case_of(name), catalogue.find(name)
    given = case.given(folder)
    failures = []
    for parameter in found.parameters.values():
        # Objects are the user's own; some numbers just ask for much of what there is.
        if parameter.name in READER_PARAMETERS or parameter.element is object or parameter.name == "num_outputs":
            continue
        for value in _wrong_values(parameter):
            hostile = Case(inputs=case.inputs, arguments={**given, parameter.name: value})
            shown = (
                f"{parameter.name}={value.values[0]!r}" if isinstance(value, Each) else f"{parameter.name}={value!r}"
            )
            try:
                run_case(name, hostile, folder, (0, 1))
            except DalifyError as error:
                if found.public_name not in str(error):
                    failures.append(f"{shown}: the message does not name the operator: {error}")
            except MemoryError:
                pass  # what was asked for was asked for
            except Exception as error:
                failures.append(f"{shown}: {type(error).__name__}: {error}")
    assert not failures, "\n".join(failures)
