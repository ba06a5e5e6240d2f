"""Base classes of user functions on batches: ``fn.MediaFunc`` and ``fn.ExtCpuOp``.

Programs import them from this path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

__all__ = ["media_ext_cpu_op_impl", "media_ext_cpu_op_tensor_info", "media_function"]


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


@dataclass(frozen=True)
class media_ext_cpu_op_tensor_info:  # noqa: N801
    """Dtype and extents of a batch.

    Attributes:
        dtype: dtype.
        shape: extents, fastest dimension first, batch last.
        layout: letters of the dimensions in the same order.
    """

    dtype: str
    shape: Any
    layout: str = ""


class media_ext_cpu_op_impl(media_function):  # noqa: N801
    """A function with one or more results, which may declare their dtypes with ``gen_output_info``."""

    def gen_output_info(self, *inputs: Any) -> Any:
        """Return a ``media_ext_cpu_op_tensor_info``, or a list with one per result; None to infer it from the data."""
        return None
