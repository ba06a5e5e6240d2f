"""Base classes of user functions on batches: ``fn.MediaFunc`` and ``fn.ExtCpuOp``.

Programs import them from this path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dalify.mediapipe.operators.reader_nodes.reader_nodes import media_ext_reader_op_tensor_info

media_ext_cpu_op_tensor_info = media_ext_reader_op_tensor_info


class media_function(ABC):  # noqa: N801 -- the name that programs import
    """A function that creates or changes a batch.

    Args:
        params: "shape" (fastest dimension first, the batch last), "dtype", "seed", "priv_params".
    """

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params

    @abstractmethod
    def __call__(self, *inputs: Any) -> Any:
        """Return an array with the batch as its first dimension; `inputs` have the same form."""


class media_ext_cpu_op_impl(media_function):  # noqa: N801
    """A function with one or more results, which may declare their dtypes with ``gen_output_info``."""

    def gen_output_info(self, *inputs: Any) -> Any:
        """Return a ``media_ext_cpu_op_tensor_info``, or a list with one per result; None to infer it from the data."""
        return None
