"""``opnode_tensor_info``, at the path from which programs import it."""

from __future__ import annotations

from dalify.mediapipe.operators.reader_nodes.reader_nodes import media_ext_reader_op_tensor_info

opnode_tensor_info = media_ext_reader_op_tensor_info
