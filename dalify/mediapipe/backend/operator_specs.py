"""``schema.add_operator``: tell of a reader of the program's own, which ``fn.operator_add`` then makes an operator.

Alone because programs import it from this path. New programs do better with ``fn.MediaExtReaderOp``, which needs no
registering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, suggestion
from dalify.base.source_line import SourceLine
from dalify.mediapipe.operators.media_nodes import MediaReaderNode

__all__ = ["OperatorSpec", "Schema", "schema"]


@dataclass(frozen=True)
class OperatorSpec:
    """A reader that was told of.

    Attributes:
        name: of the operator.
        guid: accepted.
        num_outputs: number of its results.
        params: names of its arguments, with their defaults.
        node_class: the class that reads.
    """

    name: str
    guid: Any
    num_outputs: int
    params: Mapping[str, Any]
    node_class: type[MediaReaderNode]


class Schema:
    """The readers of this process's programs, by name."""

    def __init__(self) -> None:
        self._specs: dict[str, OperatorSpec] = {}

    def add_operator(
        self,
        name: str,
        guid: Any,
        min_inputs: int,
        max_inputs: int,
        input_keys: Any,
        num_outputs: int,
        params: Mapping[str, Any] | None,
        cparams: Any,
        node_class: Any,
        dtype: Any = None,
    ) -> None:
        """Tell of a reader.

        Args:
            name: of the operator.
            guid: accepted.
            min_inputs: 0: readers have no inputs.
            max_inputs: 0.
            input_keys: accepted.
            num_outputs: number of its results; the first are files, or paths of files.
            params: names of its arguments, with their defaults.
            cparams: accepted.
            node_class: derived from ``MediaReaderNode``.
            dtype: accepted.

        Raises:
            ArgumentTypeError: the class is no reader.
            ArgumentValueError: it has inputs.
        """
        del input_keys, cparams, dtype
        if not (isinstance(node_class, type) and issubclass(node_class, MediaReaderNode)):
            raise ArgumentTypeError(
                f"the class of the operator {name!r} has to derive from MediaReaderNode; got {node_class!r}.",
                line=SourceLine.capture(),
                hint="fn.MediaFunc and fn.ExtCpuOp run functions of your own on batches.",
            )
        if min_inputs or max_inputs:
            raise ArgumentValueError(f"the reader {name!r} can have no inputs.", line=SourceLine.capture())
        self._specs[name] = OperatorSpec(name, guid, num_outputs, dict(params or {}), node_class)

    def spec_of(self, name: str) -> OperatorSpec:
        """Return what was told of a reader.

        Raises:
            ArgumentValueError: nothing was.
        """
        if name not in self._specs:
            raise ArgumentValueError(
                f"nothing was told of an operator {name!r}.{suggestion(name, self._specs)}",
                line=SourceLine.capture(),
                hint="Call schema.add_operator before.",
            )
        return self._specs[name]


schema = Schema()
