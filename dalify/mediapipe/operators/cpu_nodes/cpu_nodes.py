"""Base classes of users' functions on batches: ``fn.MediaFunc`` and ``fn.ExtCpuOp``.

Alone because programs import them from this path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

__all__ = ["media_ext_cpu_op_impl", "media_ext_cpu_op_tensor_info", "media_function"]


class media_function(ABC):  # noqa: N801 -- the name that programs import
    """A function that makes, or changes, a batch.

    Args:
        params: "shape" (fastest dimension first, the batch last), "dtype", "seed", "priv_params".
    """

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params

    @abstractmethod
    def __call__(self, *inputs: Any) -> Any:
        """Return an array with the batch as its first dimension; `inputs` are such arrays."""


@dataclass(frozen=True)
class media_ext_cpu_op_tensor_info:  # noqa: N801
    """Type and extents of a batch.

    Attributes:
        dtype: element type.
        shape: extents, fastest dimension first, the batch last.
        layout: letters of the dimensions in the same order.
    """

    dtype: str
    shape: Any
    layout: str = ""


class media_ext_cpu_op_impl(media_function):  # noqa: N801
    """A function with one result or more, which may tell their types with ``gen_output_info``."""

    def gen_output_info(self, *inputs: Any) -> Any:
        """Return a ``media_ext_cpu_op_tensor_info``, or a list with one per result; None: found out from the data."""
        return None
