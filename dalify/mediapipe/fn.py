"""MediaPipe's operators, by their names: ``fn.ImageDecoder(resize=[224, 224])``."""

from __future__ import annotations

from typing import Any

from dalify.base.errors import UnknownOperatorError, suggestion
from dalify.base.source_line import SourceLine
from dalify.mediapipe.node import Operation
from dalify.mediapipe.nodes import arithmetic, colours, decoders, detection, images, readers, user, values, volumes

__all__ = ["OPERATORS"]

_ROOMS = (arithmetic, colours, decoders, detection, images, readers, user, values, volumes)

OPERATORS: dict[str, type[Operation]] = {
    name: member
    for room in _ROOMS
    for name, member in vars(room).items()
    if isinstance(member, type) and issubclass(member, Operation) and member is not Operation
}


def __getattr__(name: str) -> Any:
    """Return an operator.

    Raises:
        UnknownOperatorError: it is not offered.
    """
    if name.startswith("__"):
        raise AttributeError(name)
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
