"""What must hold for every operator of the catalogue, checked on the cases of `tests.operators.cases`.

An operator file is found by itself; it needs one entry in `CASES`. Nothing here knows an operator by name.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import types
from dalify.base.errors import ArgumentTypeError, DalifyError, SerializationError, UnknownArgumentError
from dalify.data.dtypes import from_numpy
from dalify.pipeline import do_not_convert
from dalify.registry import COMMON_PARAMETERS, READER_PARAMETERS, Parameter, catalogue
from dalify.registry.legacy import LEGACY_ARGUMENTS, RETIRED_ARGUMENTS
from tests.operators.cases import CASES, SAMPLES, Case, Data, Each
from tests.operators.run_case import (
    ALL,
    Output,
    built,
    fed_values,
    function_of,
    inputs_of,
    nodes_of,
    outputs_of,
    results_of,
    run_case,
    run_case_on_dali,
    typical,
)
from tests.operators.schema_differences import DEFAULTS, MISSING, OWN

NAMES = [name for name in catalogue.names() if not name.rpartition(".")[2].startswith("_") and not name.startswith("_")]
every_operator = pytest.mark.parametrize("name", NAMES)


def case_of(name: str) -> Case:
    """Return the case of an operator."""
    if name not in CASES:
        pytest.skip("no case")
    return CASES[name]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for files that arguments name."""
    return tmp_path_factory.mktemp("cases")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> str:
    """The device ``gpu``: torch's CPU device where there is no accelerator."""
    torch = pytest.importorskip("torch")
    if not torch.accelerator.is_available():
        monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    return "gpu"


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


def test_every_operator_has_a_case():
    missing = sorted(set(NAMES) - set(CASES))
    assert not missing, (
        f"{', '.join(f'fn.{name}' for name in missing)}: no case. Add to CASES in tests/operators/cases.py: "
        f'"{missing[0]}": _case(DATA, argument=value), with typical inputs and arguments; see Case for the rest.'
    )


# -- results ---------------------------------------------------------------------------------------------------------


@every_operator
def test_batch_is_sample_by_sample(name, folder):
    """A sample gives the same result alone as in its batch; a random one the same where it stands at the same place."""
    case = case_of(name)
    whole = typical(name, folder)
    if case.not_sample_by_sample:
        pytest.skip(case.not_sample_by_sample)
    for index in ALL[:1] if catalogue.find(name).is_random else ALL:
        alone = run_case(name, case, folder, (index,))
        assert_same(alone, [(layout, [samples[index]]) for layout, samples in whole])


@every_operator
def test_chunks_are_the_whole(name, folder):
    """Several threads and a chunk per sample change nothing."""
    case = case_of(name)
    assert_same(run_case(name, case, folder, num_threads=3, seconds_per_sample=1.0), typical(name, folder))


@every_operator
def test_ragged_is_uniform(name, folder):
    """One sample of another shape, or of another argument, changes nothing for the others."""
    case = case_of(name)
    if case.not_sample_by_sample:
        pytest.skip(case.not_sample_by_sample)
    if not case.inputs:
        pytest.skip("no inputs")
    # The odd one in the middle for kernels that take neighbours together; last for random ones, which go by position.
    order = (*ALL, SAMPLES) if catalogue.find(name).is_random else (0, 1, SAMPLES, 2, 3, 4)
    ragged = run_case(name, case, folder, order)
    kept = [order.index(index) for index in ALL]
    assert_same([(layout, [samples[place] for place in kept]) for layout, samples in ragged], typical(name, folder))


@every_operator
def test_gpu_is_cpu(name, folder, gpu):
    """GPU kernels give what CPU kernels give; random ones, too."""
    case = case_of(name)
    result = run_case(name, case, folder, device=gpu)
    assert_same(result, typical(name, folder), atol=1, rtol=1e-5)


@every_operator
def test_ragged_on_gpu(name, folder, gpu):
    case = case_of(name)
    if not case.inputs:
        pytest.skip("no inputs")
    order = (*ALL, SAMPLES)
    assert_same(run_case(name, case, folder, order, device=gpu), run_case(name, case, folder, order), atol=1, rtol=1e-5)


@every_operator
@pytest.mark.parametrize("flags", [(1, 0, 0, 1, 0), (1, 1, 1, 1, 1), (0, 0, 0, 0, 0)], ids=["mixed", "all", "none"])
def test_conditional(name, folder, flags):
    """Inside a branch an operator gives what it gives outside; an empty branch runs nothing."""
    case = case_of(name)
    if case.not_sample_by_sample or catalogue.find(name).is_reader or not case.inputs:
        pytest.skip(case.not_sample_by_sample or "runs outside of branches, for whole batches")
    expected = typical(name, folder)
    samples = case.inputs[0].samples[:SAMPLES]
    layout = case.inputs[0].layout
    keeps_form = len(expected) == 1 and all(
        one.dtype == other.dtype and one.ndim == other.ndim for one, other in zip(expected[0][1], samples, strict=True)
    )
    keeps_form = keeps_form and expected[0][0] == layout

    @do_not_convert
    def sources() -> Any:
        flag = dalify.fn.external_source(source=lambda: list(np.array(flags, bool)), dtype=types.BOOL, ndim=0)
        return flag, inputs_of(case, ALL, "cpu")

    @do_not_convert
    def applied(inputs: Any) -> Any:
        return results_of(name, case, inputs, ALL, folder, "cpu")

    def one_side() -> Any:
        flag, inputs = sources()
        result = inputs[0]
        if flag:
            result = applied(inputs)[0]
        return result

    def both_sides() -> Any:
        flag, inputs = sources()
        results = applied(inputs) if flag else applied(inputs)  # noqa: RUF034 -- the two sides see other samples
        return tuple(results)

    if keeps_form:
        chosen = [one if flag else other for flag, one, other in zip(flags, expected[0][1], samples, strict=True)]
        with built(one_side, num_threads=2) as pipe:
            assert_same(outputs_of(pipe.run()), [(layout, chosen)])
    if not catalogue.find(name).is_random:
        with built(both_sides, num_threads=2) as pipe:
            assert_same(outputs_of(pipe.run()), expected)


@every_operator
def test_parity(name, folder, oracle):
    """The real DALI gives the same, within the promised tolerance."""
    case = case_of(name)
    if case.not_beside_dali:
        pytest.skip(case.not_beside_dali)
    samples = (*ALL, SAMPLES) if case.inputs else ALL
    ours = run_case(name, case, folder, samples)
    theirs = run_case_on_dali(name, case, folder, oracle, samples)
    assert_same(ours, theirs, atol=case.atol, rtol=case.rtol, share=case.share)


# -- what is known before --------------------------------------------------------------------------------------------


@every_operator
def test_inference(name, folder):
    """What a node says of its type, dimensions and layout when the graph is built comes true."""
    case = case_of(name)
    nodes = nodes_of(name, case, ALL, folder)
    for node, (layout, samples) in zip(nodes, typical(name, folder), strict=True):
        if not catalogue.find(name).is_serial and name != "external_source":
            assert node.dtype is not None
            assert node.layout is not None
        assert node.dtype in (None, from_numpy(samples[0].dtype))
        assert node.ndim in (None, samples[0].ndim)
        assert node.layout in (None, layout)


@every_operator
def test_serialised(name, folder):
    """A graph written down and read back gives the same."""
    case = case_of(name)
    names: list[str] = []

    def graph() -> Any:
        return tuple(nodes_of(name, case, ALL, folder, names=names))

    with built(do_not_convert(graph)) as pipe:
        if case.not_serialised:
            with pytest.raises(SerializationError, match=re.escape(f"fn.{name}")):
                pipe.serialize()
            return
        text = pipe.serialize()
    again = dalify.Pipeline.deserialize(text, prefetch_queue_depth=1)
    try:
        again.build()
        for key, values in zip(names, fed_values(case, ALL, folder), strict=True):
            again.feed_input(key, values)
        assert_same(outputs_of(again.run()), typical(name, folder))
    finally:
        again.close()


# -- mistakes --------------------------------------------------------------------------------------------------------


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
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_hostile_input(name, folder, device, monkeypatch):
    """Data that were not meant: a result, the same on both devices, or an error of ours that names the operator."""
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    case = case_of(name)
    if not case.inputs:
        pytest.skip("no inputs")
    failures = []
    for what, data in HOSTILE.items():
        samples = [data.samples[0]] * (SAMPLES + 1)
        hostile = Case(inputs=(Data(samples, data.layout), *case.inputs[1:]), arguments=case.arguments)
        try:
            run_case(name, hostile, folder, (0, 1), device=device)
        except DalifyError as error:
            if catalogue.find(name).public_name not in str(error):
                failures.append(f"{what}: the message does not name the operator: {error}")
        except Exception as error:
            failures.append(f"{what}: {type(error).__name__}: {error}")
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


# -- documentation and schema ----------------------------------------------------------------------------------------


@every_operator
def test_documentation(name):
    """The docstring says what each input and argument means, what comes out, and gives an example."""
    found = catalogue.find(name)
    own = [item for item in found.parameters if not (found.is_reader and item in READER_PARAMETERS)]
    words = [*(item.name for item in found.inputs), *own]
    sections = re.split(r"^(Args|Returns|Raises|Example):\n", found.doc, flags=re.MULTILINE)
    texts = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert sections[0].strip()
    missing = [
        word for word in words if not re.search(rf"^ +{re.escape(word)}(,|:| )", texts.get("Args", ""), re.MULTILINE)
    ]
    missing = [word for word in missing if not re.search(rf"\b{re.escape(word)}\b[^\n]*:", texts.get("Args", ""))]
    assert not missing
    assert texts.get("Returns", "").strip()
    assert re.search(r"fn\.|\bx\b|=", texts.get("Example", ""))


@every_operator
def test_schema(name, oracle):
    """Arguments, defaults and the number of inputs are those of the real DALI, but for what the tables explain."""
    try:
        theirs = operator.attrgetter(name)(oracle.fn)
    except AttributeError:
        pytest.skip("DALI has no such function")
    found = catalogue.find(name)
    signature = inspect.signature(theirs).parameters
    keywords = {
        item.name: item.default
        for item in signature.values()
        if item.kind in (item.KEYWORD_ONLY, item.POSITIONAL_OR_KEYWORD)
        and item.name not in COMMON_PARAMETERS
        and item.name not in RETIRED_ARGUMENTS - set(found.parameters)
        and LEGACY_ARGUMENTS.get(item.name) not in found.parameters
    }
    problems = [
        f"{item} is missing" for item in keywords if item not in found.parameters and f"{name}.{item}" not in MISSING
    ]
    ours = [item for item in found.parameters if not (found.is_reader and item in READER_PARAMETERS)]
    problems += [f"{item} is not DALI's" for item in ours if item not in keywords and f"{name}.{item}" not in OWN]
    for item, default in keywords.items():
        parameter = found.parameters.get(item)
        if parameter is None or f"{name}.{item}" in DEFAULTS:
            continue
        if parameter.is_required != (default is inspect.Parameter.empty):
            problems.append(f"{item}: required in one only")
        elif not parameter.is_required and not _same_default(parameter, default):
            problems.append(f"{item}: default {parameter.default!r}, in DALI {default!r}")
    positional = [item for item in signature.values() if item.kind is item.POSITIONAL_ONLY]
    if name not in OWN and (positional or found.inputs):
        required = sum(1 for item in found.inputs if not item.is_optional and not item.is_variadic)
        if required != sum(1 for item in positional if item.default is item.empty):
            problems.append(f"inputs: {found.inputs}, in DALI {positional}")
    assert not problems


def _same_default(parameter: Any, default: Any) -> bool:
    """Compare with DALI's default, whose lists may be written as one number and whose enumerations are other types."""
    ours = parameter.default
    if default is None or ours is None:
        return default is ours or default == []  # DALI's empty list is an argument that was not given
    if hasattr(ours, "name"):
        return str(default).rpartition(".")[2] == ours.name
    as_list = list(ours) if isinstance(ours, tuple) else [ours]
    other = list(default) if isinstance(default, (list, tuple)) else [default]
    return as_list == other or (not isinstance(other[0], str) and np.allclose(as_list, other, rtol=1e-6))


def test_tables_of_differences_are_needed(oracle):
    for key in [*DEFAULTS, *MISSING, *(item for item in OWN if item not in NAMES)]:
        name, _, argument = key.rpartition(".")
        assert argument in catalogue.find(name).parameters or key in MISSING
