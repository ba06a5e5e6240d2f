"""dalify has every public name of DALI, except for those in `left_out.py`."""

from __future__ import annotations

import ast
import subprocess
import sys
import warnings
from fnmatch import fnmatchcase
from typing import Any

import pytest

import dalify.backend_impl.types  # these modules must not be imported first while names are missing
import dalify.experimental.dynamic
import dalify.math
from dalify import types
from dalify.backend import GetSchema, TryGetSchema
from dalify.base.errors import UnknownOperatorError
from dalify.registry import catalog
from tests.compatibility.left_out import FROM_DEFAULTS, LEFT_OUT, OF_FRAMEWORKS, SCHEMA_DIFFERENCES
from tests.compatibility.walker import Difference, same_value, walk


@pytest.fixture(scope="module")
def differences(oracle) -> list[Difference]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of old names, on both sides
        return list(walk())


def test_nothing_else_differs(differences):
    patterns = [*LEFT_OUT, *OF_FRAMEWORKS]
    found = [item for item in differences if not any(fnmatchcase(item.path, pattern) for pattern in patterns)]
    assert not found, "\n".join(f"{item.path}: {item.text}" for item in found)


def test_what_is_left_out_is_needed(differences):
    paths = [item.path for item in differences]
    own = [pattern for pattern in LEFT_OUT if pattern not in FROM_DEFAULTS]
    unused = [pattern for pattern in own if not any(fnmatchcase(path, pattern) for path in paths)]
    assert not unused


def test_the_walker_finds_missing_names(oracle, monkeypatch):
    """A test that cannot fail would be none."""
    monkeypatch.delattr(dalify.math, "sqrt")
    monkeypatch.setattr(dalify.math, "cos", lambda x, y: None)
    monkeypatch.delattr(dalify.Pipeline, "feed_input")
    monkeypatch.setattr(dalify.types, "NHWC", "CHW")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {item.path for item in walk() if not any(fnmatchcase(item.path, pattern) for pattern in LEFT_OUT)}
    assert found == {"math.sqrt", "math.cos.input", "math.cos.y", "pipeline.Pipeline.feed_input", "types.NHWC"}


def _attributes(package: str) -> set[str]:
    code = f"import {package} as dali; print([name for name in dir(dali) if not name.startswith('_')])"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return set(ast.literal_eval(done.stdout.splitlines()[-1]))


def test_attributes_are_available_immediately(oracle):
    assert _attributes("nvidia.dali") <= _attributes("dalify")


# -- schemas -----------------------------------------------------------------------------------------------------------

# Of one argument; what DALI tells of arguments that are no graph values and those with other defaults is in the walk.
_OF_ARGUMENTS = ("IsArgumentOptional", "IsTensorArgument", "ArgSupportsPerFrameInput")
_KINDS = {"FLOAT": "float", "BOOL": "bool", "STRING": "str", "TENSOR_LAYOUT": "str"}


def _schemas(oracle: Any) -> dict[str, tuple[Any, Any]]:
    theirs = oracle.backend
    names = {*theirs.RegisteredCPUOps(), *theirs.RegisteredGPUOps(), *theirs.RegisteredMixedOps()}
    return {name: (theirs.GetSchema(name), TryGetSchema(name)) for name in sorted(names) if not name.startswith("_")}


def test_schemas(oracle):
    problems: list[str] = []
    for name, (theirs, ours) in _schemas(oracle).items():
        if ours is None:
            problems.append(f"{name}: no schema")
            continue
        for method in ("MinNumInput", "MaxNumInput", "IsDeprecated", "HasRandomSeedArg", "IsNoPrune"):
            wanted, found = getattr(theirs, method)(), getattr(ours, method)()
            if wanted != found and f"{name}.{method}" not in SCHEMA_DIFFERENCES:
                problems.append(f"{name}.{method}: {wanted!r}, here {found!r}")
        for argument in theirs.GetArgumentNames():
            if not ours.HasArgument(argument):
                problems.append(f"{name}.{argument}: missing")
                continue
            if argument not in ours.GetArgumentNames():
                continue  # accepted, and without effect
            for method in _OF_ARGUMENTS:
                wanted, found = getattr(theirs, method)(argument), getattr(ours, method)(argument)
                is_known = {f"{name}.{argument}", f"{name}.{argument}.{method}"} & SCHEMA_DIFFERENCES.keys()
                if wanted and not found and not is_known:
                    problems.append(f"{name}.{argument}.{method}: {wanted!r}, here {found!r}")
    assert not problems, "\n".join(problems)


def test_schemas_of_unknown_operators():
    assert TryGetSchema("NoSuchThing") is None
    with pytest.raises(KeyError):
        GetSchema("NoSuchThing")
    with pytest.raises(UnknownOperatorError, match="Did you mean 'Resize'"):
        GetSchema("Resise")


def test_schema_tells_what_the_operator_is():
    schema = GetSchema("Resize")
    assert (schema.Name(), schema.OperatorName(), schema.ModulePath()) == ("Resize", "Resize", [])
    assert schema.GetArgumentType("size") == types.DALIDataType._FLOAT_VEC
    assert schema.GetArgumentType("interp_type") == types.DALIDataType.INTERP_TYPE
    assert schema.GetArgumentDefaultValueString("antialias") == "True"
    assert "size" in schema.GetArgumentNames()
    assert "extents" in schema.GetArgumentDox("size")
    assert schema.GetInputName(0)
    assert schema.GetInputDox(0)
    with pytest.raises(ValueError, match="no default"):
        schema.GetArgumentDefaultValueString("size")
    with pytest.raises(KeyError):
        schema.GetArgumentType("nothing")
    assert GetSchema("Crop").DeprecatedArgInfo("output_dtype")["renamed_to"] == "dtype"
    assert GetSchema("FileReader").DeprecatedInFavorOf() == "readers__File"
    assert GetSchema("readers__File").GetSupportedBackends() == ["cpu"]
    assert same_value("DALIDataType.FLOAT", types.DALIDataType.FLOAT)
    assert len(catalog.names()) > 100
