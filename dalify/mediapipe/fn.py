"""MediaPipe's operators by name: ``fn.ImageDecoder(resize=[224, 224])``."""

from __future__ import annotations

from typing import Any

from dalify.base.errors import ArgumentValueError, UnknownOperatorError, suggestion
from dalify.mediapipe.backend.operator_specs import schema
from dalify.mediapipe.node import Operation
from dalify.mediapipe.nodes import (
    arithmetic,
    colors,
    decoders,
    detection,
    images,
    indexing,
    readers,
    ssd,
    user,
    values,
    video,
    volumes,
)

_MODULES = (arithmetic, colors, decoders, detection, images, indexing, readers, ssd, user, values, video, volumes)

OPERATORS: dict[str, type[Operation]] = {
    name: member
    for module in _MODULES
    for name, member in vars(module).items()
    if isinstance(member, type) and issubclass(member, Operation) and member is not Operation
}


_BUILT_IN = frozenset(OPERATORS)

# Unsupported operators, and what to use instead.
_UNSUPPORTED = {
    "ExtHpuOp": "It runs a program for Gaudi's cores. fn.ExtCpuOp and fn.MediaFunc run Python on whole batches.",
}


def operator_add(name: str, *_: Any) -> type[Operation]:
    """Make an operator ``fn.<name>`` of a reader registered with ``schema.add_operator``.

    Args:
        name: name of the operator.

    Raises:
        ArgumentValueError: the reader is not registered, or a built-in operator has this name.
    """
    spec = schema.spec_of(name)
    if name in _BUILT_IN:
        raise ArgumentValueError.here(f"the operator {name!r} already exists.")
    OPERATORS[name] = user.registered_reader(spec)
    return OPERATORS[name]


def __getattr__(name: str) -> Any:
    """Return an operator.

    Raises:
        UnknownOperatorError: the operator does not exist.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _UNSUPPORTED:
        raise UnknownOperatorError.here(f"dalify.mediapipe does not support {name}.", hint=_UNSUPPORTED[name])
    if name not in OPERATORS:
        raise UnknownOperatorError.here(
            f"dalify.mediapipe has no operator {name!r}.{suggestion(name, OPERATORS)}",
            hint=f"Available: {', '.join(sorted(OPERATORS))}. Use fn.MediaFunc for anything else.",
        )
    return OPERATORS[name]


def __dir__() -> list[str]:
    """Return the names of the operators."""
    return sorted(OPERATORS)
