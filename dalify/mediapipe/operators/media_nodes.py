"""Base class of readers that a program registers with ``schema.add_operator``.

Alone because programs import it from this path.
"""

from __future__ import annotations

from typing import Any

from dalify.mediapipe.operators.reader_nodes.reader_nodes import media_ext_reader_op_impl

__all__ = ["MediaReaderNode"]


class MediaReaderNode(media_ext_reader_op_impl):
    """A reader of the program's own.

    Args:
        name: of the operator.
        guid: accepted.
        device: that the operator was given.
        inputs: none.
        params: its arguments.
        cparams: accepted.
        node_attr: accepted.
    """

    def __init__(
        self, name: str, guid: Any, device: Any, inputs: Any, params: dict[str, Any], cparams: Any, node_attr: Any
    ) -> None:
        super().__init__(params)
        self.name = name
        self.device = device

    def set_params(self, params: Any) -> None:
        """Take what the pipe tells before it asks for anything else: ``params.batch_size``."""
