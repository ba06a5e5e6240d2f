"""``numba_function`` under DALI's import path, with its choice between samples and batches."""

from __future__ import annotations

from typing import Any

from dalify.api.functions import use
from dalify.registry import catalogue

__all__ = ["numba_function"]


def numba_function(*inputs: Any, batch_processing: bool = False, **arguments: Any) -> Any:
    """Call a function that numba compiles.

    Args:
        inputs: graph values on the CPU.
        batch_processing: call ``run_fn`` once per batch, with a list of arrays for each output and input, instead of
            once per sample.
        arguments: run_fn, out_types, in_types, outs_ndim, ins_ndim, setup_fn: see ``fn.experimental.numba_function``.

    Returns:
        a graph value, or a list of several.
    """
    if not batch_processing:
        return use(catalogue.find("experimental.numba_function"), inputs, arguments)
    for name in ("blocks", "threads_per_block"):
        arguments.pop(name, None)
    return use(catalogue.find("experimental._numba_batch_function"), inputs, arguments)
