"""``schema.add_operator``: registers a reader of the program, which ``fn.operator_add`` makes an operator.

Programs import it from this path. New programs should use ``fn.MediaExtReaderOp``, which needs no registration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, suggestion
from dalify.mediapipe.operators.media_nodes import MediaReaderNode


@dataclass(frozen=True)
class OperatorSpec:
    """A registered reader.

    Attributes:
        name: name of the operator.
        guid: accepted but ignored.
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
    """The registered readers of this process, by name."""

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
        """Register a reader.

        Args:
            name: name of the operator.
            guid: accepted but ignored.
            min_inputs: must be 0, because readers have no inputs.
            max_inputs: must be 0.
            input_keys: accepted but ignored.
            num_outputs: number of its results; the first is files, or paths of files.
            params: names of its arguments, with their defaults.
            cparams: accepted but ignored.
            node_class: derived from ``MediaReaderNode``.
            dtype: accepted but ignored.

        Raises:
            ArgumentTypeError: the class is not a reader.
            ArgumentValueError: the reader has inputs.
        """
        del input_keys, cparams, dtype
        if not (isinstance(node_class, type) and issubclass(node_class, MediaReaderNode)):
            raise ArgumentTypeError.here(
                f"the class of the operator {name!r} must derive from MediaReaderNode; got {node_class!r}.",
                hint="Use fn.MediaFunc or fn.ExtCpuOp to run your own functions on batches.",
            )
        if min_inputs or max_inputs:
            raise ArgumentValueError.here(f"the reader {name!r} must not have inputs.")
        self._specs[name] = OperatorSpec(name, guid, num_outputs, dict(params or {}), node_class)

    def spec_of(self, name: str) -> OperatorSpec:
        """Return a registered reader.

        Raises:
            ArgumentValueError: no such reader is registered.
        """
        if name not in self._specs:
            raise ArgumentValueError.here(
                f"no operator {name!r} is registered.{suggestion(name, self._specs)}",
                hint="Call schema.add_operator first.",
            )
        return self._specs[name]


schema = Schema()
