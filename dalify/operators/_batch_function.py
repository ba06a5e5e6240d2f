"""Call a Python function on whole batches, one array per input. Plugins build their operators on it.

``python_function`` passes lists of samples instead, which an array library would have to stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dalify.base.errors import SourceError
from dalify.base.wording import counted
from dalify.data import Array, Batch
from dalify.registry import Spec, operator
from dalify.sources.user_function import layout_of, output_specs


def _count(arguments: Mapping[str, Any]) -> int:
    return arguments["num_outputs"]


@operator(outputs=_count, serial=True, side_effect=True, user_code=True)
def _batch_function(
    *xs: Spec, function: object, num_outputs: int = 1, output_layouts: object = None
) -> tuple[Spec, ...]:
    """Call ``function`` with one array ``[N, ...]`` per input; it returns a tuple of such arrays.

    An output without a layout takes the layout of the input with the same index if their dimensions match.
    """
    return output_specs(xs, function, num_outputs, output_layouts)


@_batch_function.cpu_batch
def _(*xs: Batch, function: Any, num_outputs: int, output_layouts: Any, count: int) -> Any:
    return _call_function(xs, function, num_outputs, output_layouts, count, "cpu")


@_batch_function.gpu_batch
def _(*xs: Batch, function: Any, num_outputs: int, output_layouts: Any, count: int) -> Any:
    return _call_function(xs, function, num_outputs, output_layouts, count, "gpu")


def _call_function(
    xs: tuple[Batch, ...], function: Callable[..., Any], num_outputs: int, output_layouts: Any, count: int, device: str
) -> tuple[Batch, ...]:
    results = function(*(_as_array(x, index) for index, x in enumerate(xs)))
    origins = next((x.origins for x in xs if x.origins is not None), None)
    batches: list[Batch] = []
    for index in range(num_outputs):
        array = results[index]
        if array.ndim == 0 or len(array) != count:
            got = "a single value" if array.ndim == 0 else counted(len(array), "sample")
            raise SourceError(
                f"output {index} of the function has {got}; expected {count}, the batch size.",
                hint="The first axis of the arrays that the function receives and returns is the batch.",
            )
        layout = layout_of(output_layouts, index)
        if layout is None:
            layout = xs[index].layout if index < len(xs) and len(xs[index].layout) == array.ndim - 1 else ""
        batches.append(Batch(array, None, layout, device, origins))
    return tuple(batches)


def _as_array(batch: Batch, index: int) -> Array:
    hint = "Make their shapes equal first, with fn.resize, fn.crop or fn.pad."
    batch.check_uniform(f"the samples of input {index}", hint)
    return batch.stacked()
