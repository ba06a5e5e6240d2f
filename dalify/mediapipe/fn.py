"""MediaPipe's operators, by their names: ``fn.ImageDecoder(resize=[224, 224])``."""

from __future__ import annotations

from typing import Any

from dalify.base.errors import ArgumentValueError, UnknownOperatorError, suggestion
from dalify.base.source_line import SourceLine
from dalify.mediapipe.backend.operator_specs import schema
from dalify.mediapipe.node import Operation
from dalify.mediapipe.nodes import (
    arithmetic,
    colours,
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

__all__ = ["OPERATORS", "operator_add"]

_ROOMS = (arithmetic, colours, decoders, detection, images, indexing, readers, ssd, user, values, video, volumes)

OPERATORS: dict[str, type[Operation]] = {
    name: member
    for room in _ROOMS
    for name, member in vars(room).items()
    if isinstance(member, type) and issubclass(member, Operation) and member is not Operation
}


_OWN = frozenset(OPERATORS)

# Names that programs may have, and what to write instead.
_ELSEWHERE = {
    "ExtHpuOp": "It runs a program for Gaudi's cores. fn.ExtCpuOp and fn.MediaFunc run Python on whole batches.",
}


def operator_add(name: str, *_: Any) -> type[Operation]:
    """Make an operator of a reader that ``schema.add_operator`` was told of; it is ``fn.<name>`` from then on.

    Args:
        name: of the operator.

    Raises:
        ArgumentValueError: nothing is known of it, or the name is that of another operator.
    """
    spec = schema.spec_of(name)
    if name in _OWN:
        raise ArgumentValueError(f"there is an operator {name!r} already.", line=SourceLine.capture())
    OPERATORS[name] = user.registered_reader(spec)
    return OPERATORS[name]


def __getattr__(name: str) -> Any:
    """Return an operator.

    Raises:
        UnknownOperatorError: it is not offered.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _ELSEWHERE:
        raise UnknownOperatorError(
            f"dalify.mediapipe does not offer {name}.", line=SourceLine.capture(), hint=_ELSEWHERE[name]
        )
    if name not in OPERATORS:
        raise UnknownOperatorError(
            f"dalify.mediapipe has no operator {name!r}.{suggestion(name, OPERATORS)}",
            line=SourceLine.capture(),
            hint=f"It has: {', '.join(sorted(OPERATORS))}. What has no equal here can be a fn.MediaFunc.",
        )
    return OPERATORS[name]


def __dir__() -> list[str]:
    """Return the names of the operators."""
    return sorted(OPERATORS)
