"""Keyword arguments of operators: their types, parsed from annotations, and validation of values."""

from __future__ import annotations

import contextlib
import math
import os
import types as python_types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from os import PathLike
from typing import Annotated, Any, Literal, TypeVar

import numpy as np

from dalify.base.errors import ArgumentRangeError, ArgumentTypeError, ArgumentValueError, option_error_text
from dalify.base.narrow import is_list_or_tuple, is_number
from dalify.data.dtypes import DALIDataType, from_numpy

T = TypeVar("T")

PerSample = Annotated[T, "per_sample"]
"""The argument can vary per sample: it is a constant or a graph value.

Kernels receive ``[N]`` (or ``[N, k]``) arrays.
"""

Shaping = Annotated[T, "shaping"]
"""Like PerSample, but the output shape depends on it: at run time, the rule receives the value of each sample."""

Canvas = Annotated[T, "shaping", "rounded"]
"""Extents of a warped image: like Shaping, but constants are rounded, and a fraction of a pixel is one pixel.

The rule truncates what it receives, which affects only graph values, as in DALI.
"""

PerSampleOrFrame = Annotated[T, "per_sample", "frames"]
"""Like PerSample, but a graph value whose layout starts with F has one entry for each frame of a sequence.

Kernels receive ``[N, k]``, or ``[N, F, k]`` for entries by frame, also for single values, with k = 1.
"""

PerFrame = Annotated[T, "per_sample", "frames", "sequences"]
"""Like PerSampleOrFrame, but entries by frame make the result a sequence.

The rule receives VARIES_BY_FRAME for a graph value whose layout starts with F.
"""

Matrix = Annotated[T, "matrix"]
"""Numbers that form a matrix. A graph value has two axes, or is a single number if T includes numbers.

Constants are in row-major order. Kernels receive constants as ``[N, k]``, and graph values as ``[N, rows, columns]``.
"""

AnyShape = Annotated[T, "any_shape"]
"""A list for which a graph value may have any number of axes. Graph values for other lists have at most one axis."""


class _Varies:
    """Represents, in an output rule, an argument that varies per sample."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "VARIES"

    def __bool__(self) -> bool:
        raise AssertionError("dalify bug: an output rule used a per-sample argument as a constant; compare with VARIES")


VARIES: Any = _Varies()
VARIES_BY_FRAME: Any = _Varies()
NO_DEFAULT: Any = object()

# DALI converts every string but the empty one to True. Only these strings are accepted.
_BOOLEANS = {"": False, "1": True, "true": True, "yes": True, "on": True}

Kind = Literal["static", "per_sample", "shaping"]
# The field of Parameter that a note of an annotation sets.
_NOTES = {
    "frames": "accepts_frames",
    "sequences": "makes_sequences",
    "rounded": "is_rounded",
    "matrix": "is_matrix",
    "any_shape": "has_any_shape",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One keyword argument of an operator.

    Attributes:
        name: name of the argument.
        kind: ``static`` (one value for the whole graph), ``per_sample`` or ``shaping``.
        element: type of the value, or of the items of a list; ``object`` accepts anything. A class with ``from_user``
            converts user values to a canonical form of plain values and tuples.
        is_list: a list of elements; a single element is treated as a list of one.
        is_optional: None means "not given".
        default: the default value; NO_DEFAULT if the argument is required.
        annotation: annotation as a string, for the documentation.
        is_positional: can be passed by position, like ``source`` of ``external_source``.
        accepts_frames: annotated ``PerSampleOrFrame`` or ``PerFrame``: can have per-frame entries.
        makes_sequences: annotated ``PerFrame``: with per-frame entries, the result is a sequence.
        is_rounded: annotated ``Canvas``: constants are rounded half up to integers, and fractions of one to one.
        is_matrix: annotated ``Matrix``: the samples of a graph value are matrices.
        has_any_shape: annotated ``AnyShape``: the samples of a graph value may have any number of axes.
    """

    name: str
    kind: Kind
    element: type[Any]
    is_list: bool
    is_optional: bool
    default: Any
    annotation: str
    is_positional: bool = False
    accepts_frames: bool = False
    makes_sequences: bool = False
    is_rounded: bool = False
    is_matrix: bool = False
    has_any_shape: bool = False

    @property
    def is_required(self) -> bool:
        """Whether the argument is required."""
        return self.default is NO_DEFAULT

    @property
    def accepts_node(self) -> bool:
        """Whether the argument can be a graph value."""
        return self.kind != "static"

    def normalize(self, value: Any, operator: str) -> Any:
        """Return the value in its canonical form: int, float, bool, str, enum, or a tuple of these.

        Values are converted as DALI converts them: with ``int``, ``float`` or ``str``, and first with ``item`` if they
        have it. Conversions that change the meaning are errors: ``"False"`` to True, 0.5 to 0, fractions to booleans,
        booleans to enumerations, lists and objects to booleans or strings. An optional element type that is
        ``types.NO_TYPE`` is not given.

        Raises:
            ArgumentTypeError: the value has the wrong type.
            ArgumentValueError: an unknown option, or a number out of range.
        """
        if value is None:
            if self.is_optional:
                return None
            if self.default is not NO_DEFAULT:
                return self.default
        if self.element is object:
            return value
        is_type = self.element is DALIDataType and not self.is_list
        if is_type and self.is_optional and isinstance(value, int) and value == DALIDataType.NO_TYPE:
            return self.default
        from_user = getattr(self.element, "from_user", None)
        if from_user is not None:
            return from_user(value)
        if not self.is_list:
            return self._element(value, operator)
        if not isinstance(value, type) and callable(to_list := getattr(value, "tolist", None)):  # an array or a tensor
            value = to_list()
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            value = (value,)
        return tuple(self._elements(value, operator))

    def _elements(self, values: Any, operator: str) -> list[Any]:
        items: list[Any] = []
        for item in values:
            if is_list_or_tuple(item):
                items.extend(self._elements(item, operator))  # matrices are lists of rows
            else:
                items.append(self._element(item, operator))
        return items

    def _element(self, value: Any, operator: str) -> Any:
        kind = self.element
        original, value = value, _from_string(_plain(value), kind)
        if issubclass(kind, IntEnum):
            return self._enum(value, operator)
        is_number = isinstance(value, (int, float))
        if is_number:
            self._check_range(value, operator)
        if kind is float and is_number:
            return float(max(math.floor(value + 0.5), 1) if self.is_rounded and value > 0 else value)
        if kind is bool and is_number and value == value // 1:  # a fraction is a probability
            return bool(value)
        if kind is int and isinstance(value, int):
            return int(value)
        if kind is int and is_number and not math.isnan(value) and (int(value) or not value):  # 0.5 is not 0
            return int(value)
        if isinstance(value, kind):
            return value
        if kind is str and isinstance(value, PathLike):
            return os.fspath(typing.cast("PathLike[str]", value))
        if kind is str and is_number and not isinstance(value, bool):
            return str(value)
        expected = {int: "an integer", float: "a number", bool: "True or False", str: "a string"}.get(
            kind, kind.__name__
        )
        if self.is_list:
            expected += " or a list of these"
        raise ArgumentTypeError(
            f"{self.name} must be {expected}; got {original!r} of type {type(original).__name__}.",
            operator=operator,
        )

    def _check_range(self, value: float, operator: str) -> None:
        """Raise for values out of range: kernels use INT32 or INT64 integers, and extents must be finite."""
        if self.kind == "static":
            if self.element is int and not -(2**63) <= value < 2**63 and not math.isnan(value):
                raise ArgumentRangeError(f"{self.name} must be a 64-bit integer; got {value!r}.", operator=operator)
        elif (self.element is int or self.kind == "shaping") and not -(2**31) <= value < 2**31:
            raise (ArgumentValueError if math.isnan(value) else ArgumentRangeError)(
                f"{self.name} must be in the range of 32-bit integers; got {value!r}.", operator=operator
            )

    def _enum(self, value: Any, operator: str) -> Any:
        kind = self.element
        if value is DALIDataType.BFLOAT16:
            raise ArgumentValueError(
                f"{self.name} cannot be BFLOAT16: only outputs of pipelines can be bfloat16.",
                hint='Use @pipeline_def(precision="bf16").',
                operator=operator,
            )
        if isinstance(value, kind):
            return value
        if is_number(value):
            if isinstance(value, float) and math.isinf(value):
                raise ArgumentRangeError(
                    f"{self.name} must be a member of {kind.__name__}; got {value!r}.", operator=operator
                )
            with contextlib.suppress(ValueError):
                return kind(value)
        elif kind is DALIDataType and isinstance(value, (type, np.dtype)):
            return from_numpy(value)  # np.float32, np.dtype("uint8"): unambiguous, and common in DALI code
        members = typing.cast("type[IntEnum]", kind)
        options = [
            f"types.{member.name}" for member in members if kind is not DALIDataType or 0 <= member <= DALIDataType.BOOL
        ]
        raise ArgumentValueError(option_error_text(self.name, value, options), operator=operator)


def _plain(value: Any) -> Any:
    """Return the number in a NumPy scalar, or in an array or tensor of one element; other values as they are."""
    if not isinstance(value, type) and callable(item := getattr(value, "item", None)):  # np.uint8 is a type
        with contextlib.suppress(ValueError, RuntimeError):  # several elements
            return item()
    return value


def _from_string(value: Any, kind: type) -> Any:
    """Return the number that a string stands for, if a number is needed; other values as they are."""
    if isinstance(value, str):
        if kind is bool:
            return _BOOLEANS.get(value.lower(), value)
        if kind is float or issubclass(kind, int):
            with contextlib.suppress(ValueError):
                return float(value) if kind is float else int(value)
    return value


def parameter_of(name: str, annotation: Any, default: Any, *, is_positional: bool = False) -> Parameter:
    """Parse one parameter of the signature of an operator.

    Args:
        name: the parameter's name.
        annotation: its evaluated annotation, with ``Annotated`` kept.
        default: its default, or NO_DEFAULT.
        is_positional: whether it can be passed by position.
    """
    annotation_text = _to_string(annotation)
    is_optional = False
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, python_types.UnionType):
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        is_optional = len(members) < len(typing.get_args(annotation))
        annotation = members[0]
        if len(members) > 1:
            # `float | list[float]` is a list; every list can be a single number.
            annotation = next((member for member in members if typing.get_origin(_inner(member)) is list), object)
    kind: Kind = "static"
    noted: dict[str, bool] = {}
    if typing.get_origin(annotation) is Annotated:
        annotation, *notes = typing.get_args(annotation)
        kind = "shaping" if "shaping" in notes else "per_sample"
        noted = {field: note in notes for note, field in _NOTES.items()}
        if typing.get_origin(annotation) in (typing.Union, python_types.UnionType):
            inner = parameter_of(name, annotation, default, is_positional=is_positional)
            return replace(inner, kind=kind, annotation=annotation_text, **noted)
    is_list = typing.get_origin(annotation) is list
    element = typing.get_args(annotation)[0] if is_list else annotation
    if not isinstance(element, type):
        element = object
    if default is None:
        is_optional = True
    parameter = Parameter(name, kind, element, is_list, is_optional, default, annotation_text, is_positional, **noted)
    if default is NO_DEFAULT or default is None:
        return parameter
    return replace(parameter, default=parameter.normalize(default, name))


def _inner(annotation: Any) -> Any:
    return typing.get_args(annotation)[0] if typing.get_origin(annotation) is Annotated else annotation


def _to_string(annotation: Any) -> str:
    """Return an annotation for the documentation: ``float``, ``list[int]``, ``float or node``."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        inner, *notes = typing.get_args(annotation)
        return _to_string(inner) + (" or node" if "per_sample" in notes or "shaping" in notes else "")
    if origin in (typing.Union, python_types.UnionType):
        return " or ".join(_to_string(member) for member in typing.get_args(annotation) if member is not type(None))
    if origin is list:
        return f"list[{_to_string(typing.get_args(annotation)[0])}]"
    return getattr(annotation, "__name__", str(annotation))
