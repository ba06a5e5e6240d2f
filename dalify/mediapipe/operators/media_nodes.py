"""Base class of readers that a program registers with ``schema.add_operator``.

Programs import it from this path.
"""

from __future__ import annotations

from typing import Any

from dalify.mediapipe.operators.reader_nodes.reader_nodes import media_ext_reader_op_impl


class MediaReaderNode(media_ext_reader_op_impl):
    """A reader defined by the program.

    Args:
        name: name of the operator.
        guid: accepted but ignored.
        device: device argument of the operator.
        inputs: empty.
        params: arguments of the operator.
        cparams: accepted but ignored.
        node_attr: accepted but ignored.
    """

    def __init__(
        self, name: str, guid: Any, device: Any, inputs: Any, params: dict[str, Any], cparams: Any, node_attr: Any
    ) -> None:
        super().__init__(params)
        self.name = name
        self.device = device

    def set_params(self, params: Any) -> None:
        """Receive information about the pipe, before any other call: ``params.batch_size``."""
