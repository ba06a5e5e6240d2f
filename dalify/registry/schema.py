"""Schemas of operators with the interface of DALI's ``backend.GetSchema``, derived from the operators.

Programs query the arguments of an operator, their types, and the number of inputs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Any

from dalify.base.errors import UnknownArgumentError, UnknownOperatorError, suggestion
from dalify.base.narrow import is_tuple
from dalify.data.dtypes import DALIDataType, DALIImageType, DALIInterpType
from dalify.registry import catalog
from dalify.registry.legacy import HIDDEN_NAMES, LEGACY_NAMES
from dalify.registry.operator import SEED, Operator
from dalify.registry.parameters import Parameter, parameter_of

_ACRONYMS = {
    "bbox": "BBox",
    "coco": "COCO",
    "dl": "DL",
    "mfcc": "MFCC",
    "mxnet": "MXNet",
    "rms": "RMS",
    "roi": "ROI",
    "tfrecord": "TFRecord",
}
# Arguments of every operator, in addition to its signature.
_COMMON = {
    item.name: item for item in (parameter_of("bytes_per_sample_hint", int, 0), parameter_of("preserve", bool, False))
}
_MAX_INPUTS = 999
_TYPES: dict[type, tuple[DALIDataType, DALIDataType]] = {
    bool: (DALIDataType.BOOL, DALIDataType["_BOOL_VEC"]),
    int: (DALIDataType.INT32, DALIDataType["_INT32_VEC"]),
    float: (DALIDataType.FLOAT, DALIDataType["_FLOAT_VEC"]),
    str: (DALIDataType.STRING, DALIDataType["_STRING_VEC"]),
    DALIDataType: (DALIDataType.DATA_TYPE, DALIDataType["_DATA_TYPE_VEC"]),
    DALIImageType: (DALIDataType.IMAGE_TYPE, DALIDataType.IMAGE_TYPE),
    DALIInterpType: (DALIDataType.INTERP_TYPE, DALIDataType.INTERP_TYPE),
}


def pascal_case(name: str) -> str:
    """Return ``CropMirrorNormalize`` for ``crop_mirror_normalize``, ``BBoxPaste`` for ``bbox_paste``."""
    return "".join(_ACRONYMS.get(part, part[:1].upper() + part[1:]) for part in name.split("_"))


def schema_name(name: str) -> str:
    """Return ``readers__File`` for ``readers.file``."""
    *path, last = name.split(".")
    return "__".join([*path, pascal_case(last)])


class OpSchema:
    """The schema of an operator, under the method names of DALI's class.

    Args:
        operator: the described operator.
        name: name of the operator in the catalog, possibly a deprecated one.
    """

    def __init__(self, operator: Operator, name: str) -> None:
        self.operator = operator
        self._path = name
        self._old = operator.old_arguments

    @property
    def _parameters(self) -> Mapping[str, Parameter]:
        seed = {"seed": SEED} if self.HasRandomSeedArg() else {}
        known = {name: item for name, item in self.operator.parameters.items() if not name.startswith("_")}
        return {**_COMMON, **seed, **known}

    def _parameter(self, name: str) -> Parameter:
        parameter = self._parameters.get(self._old.get(name, name))
        if parameter is None:
            raise UnknownArgumentError(
                f"unknown argument {name!r}.{suggestion(name, self._parameters)}", operator=self.operator.public_name
            )
        return parameter

    # Method names are DALI's.
    # ruff: noqa: N802

    def Name(self) -> str:
        """Return the name of the schema: ``readers__File``."""
        return schema_name(self._path)

    def OperatorName(self) -> str:
        """Return the name of the class in its module: ``File``."""
        return pascal_case(self._path.rpartition(".")[2])

    def ModulePath(self) -> list[str]:
        """Return the path of the module in ``fn`` and ``ops``: ``["readers"]``."""
        return self._path.split(".")[:-1]

    def Dox(self) -> str:
        """Return the description of the operator."""
        return re.split(r"\n(?:Args|Returns|Raises|Example):\n", self.operator.doc)[0].strip()

    def AliasFor(self) -> str:
        """Return the name of the schema that this one is an alias of, or ""."""
        modern = HIDDEN_NAMES.get(self._path)
        return schema_name(modern) if modern else ""

    def IsDeprecated(self) -> bool:
        """Return whether the name is deprecated."""
        return self._path in LEGACY_NAMES

    def DeprecatedInFavorOf(self) -> str:
        """Return the name of the schema that replaces a deprecated one, or ""."""
        return schema_name(LEGACY_NAMES[self._path]) if self.IsDeprecated() else ""

    def DeprecationMessage(self) -> str:
        """Return the replacement of a deprecated name as a message, or ""."""
        return f"Use fn.{LEGACY_NAMES[self._path]}." if self.IsDeprecated() else ""

    def IsDocHidden(self) -> bool:
        """Return whether the operator is hidden from the public API."""
        return any(part in ("hidden", "_conditional") for part in self._path.split("."))

    def IsInternal(self) -> bool:
        """Return whether the operator is for internal use."""
        return any(part.startswith("_") for part in self._path.split("."))

    def IsStateful(self) -> bool:
        """Return whether the operator has state besides its inputs."""
        return self.operator.takes_seed

    def IsNoPrune(self) -> bool:
        """Return whether the operator runs even if its outputs are not used."""
        return self.operator.has_side_effect

    def MinNumInput(self) -> int:
        """Return the minimum number of inputs."""
        return len(self.operator.required_inputs)

    def MaxNumInput(self) -> int:
        """Return the maximum number of inputs."""
        return _MAX_INPUTS if self.operator.is_variadic else len(self.operator.inputs)

    def HasInputDox(self) -> bool:
        """Return whether inputs have names and descriptions: always True."""
        return True

    def GetInputName(self, index: int) -> str:
        """Return the name of an input."""
        inputs = self.operator.inputs
        return inputs[min(index, len(inputs) - 1)].name

    def GetInputDox(self, index: int) -> str:
        """Return the description of an input."""
        return self._description(self.GetInputName(index))

    def CalculateOutputs(self, spec: Any) -> int:
        """Return the number of outputs for the arguments of an ``OpSpec``."""
        return self.operator.output_count({**spec.arguments, "input_count": spec.NumRegularInput()})

    def GetSupportedBackends(self) -> list[str]:
        """Return the devices: ``cpu``, ``gpu``, ``mixed``."""
        kinds = self.operator.devices or ("cpu",)
        return [*kinds, "mixed"] if self.operator.takes_mixed else [*kinds]

    def HasArgument(self, name: str) -> bool:
        """Return whether the operator has an argument of this name, current or deprecated."""
        return name in self._parameters or name in self._old or name in self.operator.retired_arguments

    def GetArgumentNames(self, include_hidden: bool = False) -> list[str]:
        """Return the sorted names of all arguments, including deprecated ones."""
        return sorted({*self._parameters, *self._old})

    def GetArgumentType(self, name: str) -> DALIDataType:
        """Return the type of the value of an argument."""
        parameter = self._parameter(name)
        single, several = _TYPES.get(parameter.element, (DALIDataType.PYTHON_OBJECT, DALIDataType.PYTHON_OBJECT))
        return several if parameter.is_list else single

    def GetArgumentDox(self, name: str) -> str:
        """Return the description of an argument."""
        self._parameter(name)
        return self._description(self._old.get(name, name))

    def IsArgumentOptional(self, arg_name: str) -> bool:
        """Return whether an argument is optional."""
        return self.HasArgument(arg_name) and not self._parameter(arg_name).is_required

    def HasArgumentDefaultValue(self, name: str) -> bool:
        """Return whether an argument has a default value."""
        parameter = self._parameter(name)
        return not parameter.is_required and parameter.default is not None

    def GetArgumentDefaultValueString(self, name: str) -> str:
        """Return the ``repr`` of the default of an argument; enumerations as integers.

        Raises:
            ValueError: the argument has no default.
        """
        if not self.HasArgumentDefaultValue(name):
            raise ValueError(f"the argument {name!r} of {self.operator.public_name} has no default.")
        parameter = self._parameter(name)
        value = parameter.default
        return repr(list(value) if is_tuple(value) else int(value) if isinstance(value, IntEnum) else value)

    def IsTensorArgument(self, name: str) -> bool:
        """Return whether an argument can vary per sample."""
        return self._parameter(name).accepts_node

    def ArgSupportsPerFrameInput(self, name: str) -> bool:
        """Return whether an argument can vary per frame."""
        return self.HasArgument(name) and self._parameter(name).accepts_frames

    def IsDeprecatedArg(self, name: str) -> bool:
        """Return whether an argument name is deprecated."""
        return name in self._old

    def DeprecatedArgInfo(self, name: str) -> dict[str, Any]:
        """Return the replacement of a deprecated argument: ``renamed_to``, ``removed``, ``msg``.

        Raises:
            ValueError: the argument is not deprecated.
        """
        self._parameter(name)
        modern = self._old.get(name)
        if modern is None:
            raise ValueError(f"the argument {name!r} of {self.operator.public_name} is not deprecated.")
        return {"renamed_to": modern, "removed": False, "msg": f"{name!r} is now called {modern!r}."}

    def HasRandomSeedArg(self) -> bool:
        """Return whether the operator takes ``seed``."""
        return self.operator.takes_seed

    def _description(self, name: str) -> str:
        found = re.search(rf"^ {{4}}\*?{re.escape(name)}: (.*(?:\n {{6,}}.*)*)", self.operator.doc, re.MULTILINE)
        return re.sub(r"\n\s+", "\n", found[1]) if found else ""

    def __repr__(self) -> str:
        """Return the name."""
        return f"<OpSchema {self.Name()}>"


def _by_schema_name() -> dict[str, str]:
    return _schema_names(catalog.revision())


@lru_cache(maxsize=1)
def _schema_names(_revision: int) -> dict[str, str]:
    names = [*LEGACY_NAMES, *HIDDEN_NAMES, *catalog.names()]
    return {schema_name(name).lower(): name for name in names if catalog.resolve(name) in catalog.names()}


def get_schema(name: str) -> OpSchema:
    """Return the schema of an operator.

    Args:
        name: ``Resize``, ``readers__File``, or a deprecated name (``FileReader``).

    Raises:
        UnknownOperatorError: there is no such operator; a subclass of KeyError, as in DALI.
    """
    found = _by_schema_name().get(name.lower())
    if found is None:
        known = [schema_name(item) for item in _by_schema_name().values()]
        raise UnknownOperatorError(f"there is no operator with the schema {name!r}.{suggestion(name, known)}")
    return OpSchema(catalog.find(catalog.resolve(found)), found)


def registered(device: str, internal: bool = False) -> list[str]:
    """Return the names of the schemas of all operators that run on a device.

    Args:
        device: ``cpu``, ``gpu`` or ``mixed``.
        internal: include operators for internal use.
    """
    schemas = map(get_schema, map(schema_name, _by_schema_name().values()))
    return sorted(
        item.Name() for item in schemas if device in item.GetSupportedBackends() and (internal or not item.IsInternal())
    )
