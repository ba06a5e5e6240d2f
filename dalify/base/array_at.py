"""Arrays over the memory of single samples, inside of compiled loops over a chunk (`dalify.data.samples`)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage] -- numba's documentation has it there
from numba.extending import intrinsic

from dalify.base.compiling import njit

__all__ = ["array_at"]


@intrinsic
def _pointer(typing_context: Any, address: Any, like: Any) -> tuple[Any, Any]:
    """Return an address as a pointer to the element type of the array `like`."""
    pointer = types.CPointer(like.dtype)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return pointer(address, like), generate


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def array_at(address, shape, like):
    """Return an array of the element type of `like`, C-contiguous, over memory that the caller keeps alive.

    Args:
        address: int64, of the first element.
        shape: tuple of int64.
        like: array of the element type.
    """
    return carray(_pointer(address, like), shape)  # pyright: ignore[reportCallIssue] -- numba gives the typing context
