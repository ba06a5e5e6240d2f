"""Call a Python function on DLPack capsules."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.optional import torch
from dalify.registry import Spec, operator
from dalify.sources.convert import writable
from dalify.sources.user_function import (
    as_array,
    as_tensor,
    calls_user_function,
    output_count,
    output_specs,
)


class _Holder:
    """Adapts a bare capsule of host memory to ``np.from_dlpack``."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _array_of(value: Any) -> Any:
    return np.from_dlpack(_Holder(value)) if type(value).__name__ == "PyCapsule" else as_array(value)


def _tensor_of(value: Any) -> Any:
    return torch.from_dlpack(value) if type(value).__name__ == "PyCapsule" else as_tensor(value)


@operator(
    outputs=output_count,
    serial=True,
    side_effect=True,
    user_code=True,
    constructor=("function", "num_outputs", "device", "synchronize_stream", "batch_processing"),
)
def dl_tensor_python_function(
    *xs: Spec,
    function: object,
    num_outputs: int = 1,
    synchronize_stream: bool = True,
    batch_processing: bool = True,
    output_layouts: object = None,
) -> tuple[Spec, ...]:
    """Call a Python function on DLPack capsules, which array libraries can import without a copy.

    Args:
        *xs: any inputs; the function receives one argument for each.
        function: receives a capsule for each input (with ``batch_processing`` a list of one capsule per sample) and
            returns capsules, arrays or tensors in the same form; several outputs as a tuple.
        num_outputs: number of outputs; with 0 it is called for its side effects.
        synchronize_stream: accepted but ignored; on a GPU the function runs on torch's current stream, which is the
            stream of the pipeline.
        batch_processing: call the function once per batch; otherwise once per sample.
        output_layouts: layout of the outputs: one string for all, or a list with one for each; by default none.

    Returns:
        ``num_outputs`` outputs.

    Raises:
        SourceError: the function returned None or a wrong number of values.
        DTypeError: the function returned an object that is not a numeric array, or arrays of different types.
        ShapeError: the function returned arrays with different numbers of dimensions.
        LayoutError: a layout does not match the number of dimensions.

    Example:
        >>> from torch.utils.dlpack import from_dlpack, to_dlpack
        >>> def double(capsules):
        ...     return [to_dlpack(from_dlpack(capsule) * 2) for capsule in capsules]
        >>> doubled = fn.dl_tensor_python_function(x, function=double)
    """
    del synchronize_stream, batch_processing
    return output_specs(xs, function, num_outputs, output_layouts)


dl_tensor_python_function.cpu_batch(calls_user_function("cpu", lambda x: writable(x).__dlpack__(), _array_of))
dl_tensor_python_function.gpu_batch(calls_user_function("gpu", lambda x: x.__dlpack__(), _tensor_of))
