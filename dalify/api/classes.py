"""Operators as classes, DALI's older way: ``resize = ops.Resize(size=224)``, later ``resize(images)``."""

from __future__ import annotations

from typing import Any, cast

from dalify.api.functions import use
from dalify.base.errors import ArgumentTypeError, DalifyError
from dalify.base.source_line import SourceLine
from dalify.registry import COMMON_PARAMETERS, Operator
from dalify.registry.legacy import LEGACY_ARGUMENTS, RETIRED_ARGUMENTS

__all__ = ["OperatorInstance", "make_class", "pascal_case"]

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


class OperatorInstance:
    """An operator with some of its arguments given; calling it makes a node.

    Args:
        arguments: keyword arguments, the same for every call.
    """

    operator: Operator

    def __init__(self, **arguments: Any) -> None:
        for name in arguments:
            modern = LEGACY_ARGUMENTS.get(name, name)
            if (
                name not in COMMON_PARAMETERS
                and modern not in self.operator.parameters
                and name not in RETIRED_ARGUMENTS
            ):
                try:
                    self.operator.parameter(name)
                except DalifyError as error:
                    error.locate(line=SourceLine.capture())
                    raise
        self.arguments = arguments

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Use the operator; arguments given here count more than those given to the constructor."""
        return use(self.operator, inputs, {**self.arguments, **arguments})

    def __repr__(self) -> str:
        """Return the class and the names of the arguments, no data."""
        return f"{type(self).__name__}({', '.join(self.arguments)})"


class _PositionalInstance(OperatorInstance):
    """An operator whose first arguments may be given by position, like ``ExternalSource(source)``."""

    def __init__(self, *values: Any, **arguments: Any) -> None:
        names = [item.name for item in self.operator.parameters.values() if item.is_positional]
        given_twice = [name for name in names[: len(values)] if name in arguments]
        if len(values) > len(names) or given_twice:
            problem = (
                f"the argument {given_twice[0]} was given twice: by position and as {given_twice[0]}=."
                if given_twice
                else f"takes at most {len(names)} arguments by position ({', '.join(names)}); {len(values)} were given."
            )
            raise ArgumentTypeError(problem, line=SourceLine.capture(), operator=self.operator.public_name)
        super().__init__(**dict(zip(names, values, strict=False)), **arguments)


def pascal_case(name: str) -> str:
    """Return ``CropMirrorNormalize`` for ``crop_mirror_normalize``, ``BBoxPaste`` for ``bbox_paste``."""
    return "".join(_ACRONYMS.get(part, part[:1].upper() + part[1:]) for part in name.split("_"))


def make_class(operator: Operator, public_name: str) -> type[OperatorInstance]:
    """Make the class for an operator, with its documentation.

    Args:
        operator: what its instances use.
        public_name: how users write it.
    """
    positional = any(item.is_positional for item in operator.parameters.values())
    base = _PositionalInstance if positional else OperatorInstance
    module, _, name = public_name.rpartition(".")
    members = {"operator": operator, "__doc__": operator.doc, "__module__": f"dalify.{module}"}
    return cast("type[OperatorInstance]", type(name, (base,), members))
