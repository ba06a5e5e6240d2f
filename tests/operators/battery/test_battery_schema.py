"""Every operator is documented, and its arguments are those of the real DALI."""

from __future__ import annotations

import inspect
import operator
import re
from typing import Any

import numpy as np
import pytest

from dalify.registry import COMMON_PARAMETERS, READER_PARAMETERS, KernelOperator, Reader, catalog
from tests.operators.battery.case import Case
from tests.operators.battery.cases import CASES
from tests.operators.battery.run_case import every_operator


def _common(found: Any) -> frozenset[str]:
    """Return the arguments that an operator has because of its class, without an entry in its signature."""
    if isinstance(found, Reader):
        return frozenset(READER_PARAMETERS)
    hidden = {item for item in found.parameters if item.startswith("_")}
    is_decoder = isinstance(found, KernelOperator) and found.substitute_function is not None
    return frozenset(hidden | ({"on_error"} if is_decoder else set()))


@every_operator
def test_documentation(name):
    """The docstring describes each input, each argument and the result, and has an example."""
    found = catalog.find(name)
    own = [item for item in found.parameters if item not in _common(found)]
    words = [*(item.name for item in found.inputs), *own]
    sections = re.split(r"^(Args|Returns|Raises|Example):\n", found.doc, flags=re.MULTILINE)
    strings = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert sections[0].strip()
    missing = [
        word for word in words if not re.search(rf"^ +{re.escape(word)}(,|:| )", strings.get("Args", ""), re.MULTILINE)
    ]
    missing = [word for word in missing if not re.search(rf"\b{re.escape(word)}\b[^\n]*:", strings.get("Args", ""))]
    assert not missing
    assert strings.get("Returns", "").strip()
    assert re.search(r"fn\.|\bx\b|=", strings.get("Example", ""))


RETIRED = {argument for name in catalog.names() for argument in catalog.find(name).retired_arguments}


@every_operator
def test_arguments_without_effect(name, oracle):
    """An argument that DALI does not know may be a mistake, such as `image_type` for `output_type`."""
    try:
        schema = oracle.backend.GetSchema(operator.attrgetter(name)(oracle.fn)._schema_name)
    except AttributeError:
        pytest.skip("DALI has no such function")
    found = catalog.find(name)
    accepted = {item for item in RETIRED if item in found.parameters or item in found.retired_arguments}
    assert accepted == {item for item in RETIRED if schema.HasArgument(item)}


@every_operator
def test_schema(name, oracle):
    """Arguments, defaults and the number of inputs are those of the real DALI, except where the case has a reason."""
    try:
        theirs = operator.attrgetter(name)(oracle.fn)
    except AttributeError:
        pytest.skip("DALI has no such function")
    found = catalog.find(name)
    signature = inspect.signature(theirs).parameters
    keywords = {
        item.name: item.default
        for item in signature.values()
        if item.kind in (item.KEYWORD_ONLY, item.POSITIONAL_OR_KEYWORD)
        and item.name not in COMMON_PARAMETERS
        and item.name not in found.retired_arguments - set(found.parameters)
        and item.name not in found.old_arguments
    }
    case = CASES.get(name, Case())
    problems = [f"{item} is missing" for item in keywords if item not in found.parameters]
    ours = [item for item in found.parameters if item not in _common(found)]
    problems += [f"{item} is not DALI's" for item in ours if item not in keywords and item not in case.own_arguments]
    for item, default in keywords.items():
        parameter = found.parameters.get(item)
        if parameter is None or item in case.other_defaults:
            continue
        if parameter.is_required != (default is inspect.Parameter.empty):
            problems.append(f"{item}: required in one only")
        elif not parameter.is_required and not _same_default(parameter, default):
            problems.append(f"{item}: default {parameter.default!r}, in DALI {default!r}")
    positional = [item for item in signature.values() if item.kind is item.POSITIONAL_ONLY]
    if positional or found.inputs:
        required = sum(1 for item in found.inputs if not item.is_optional and not item.is_variadic)
        if required != sum(1 for item in positional if item.default is item.empty):
            problems.append(f"inputs: {found.inputs}, in DALI {positional}")
    assert not problems


def _same_default(parameter: Any, default: Any) -> bool:
    """Compare with DALI's default: a list may be given as one number, and enumerations are other types."""
    ours = parameter.default
    if default is None or ours is None:
        return default is ours or default == []  # DALI's empty list is an argument that was not given
    if hasattr(ours, "name"):
        return str(default).rpartition(".")[2] == ours.name
    as_list = list(ours) if isinstance(ours, tuple) else [ours]
    other = list(default) if isinstance(default, (list, tuple)) else [default]
    return as_list == other or (
        not isinstance(other[0], str) and np.allclose(as_list, other, rtol=1e-6, atol=5e-7)
    )  # DALI shows six decimals


def test_differences_are_those_of_arguments():
    for name, case in CASES.items():
        assert {*case.other_defaults, *case.own_arguments} <= {*catalog.find(name).parameters}, name
