"""Data from the user's own Python: a callable, an iterable, a generator function, or batches fed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.data import DALIDataType
from dalify.registry import Spec, operator


def _count(arguments: Mapping[str, Any]) -> int:
    return arguments.get("num_outputs") or 1


@operator(outputs=_count)
def external_source(
    source: object = None,
    num_outputs: int | None = None,
    *,
    cycle: object = None,
    layout: object = None,
    dtype: object = None,
    ndim: object = None,
    cuda_stream: object = None,
    use_copy_kernel: object = None,
    blocking: object = None,
    batch: bool | None = None,
    repeat_last: bool = False,
    parallel: bool | None = None,
    no_copy: bool | None = None,
    prefetch_queue_depth: int | None = None,
    batch_info: bool = False,
) -> tuple[Spec, ...]:
    """Take data from a Python source.

    Args:
        source: a callable (of no argument, or of one), an iterable, or a generator function; None when data are fed
            with ``Pipeline.feed_input`` or ``Pipeline.run(name=data)``.
        num_outputs: None when the source gives one item; otherwise it gives tuples of so many, and the result is a
            list of nodes.
        cycle: what follows the last item of an iterable: None or "no" (the end), "quiet" or True (the first again,
            without end), "raise" (StopIteration once, then the first again).
        layout: layout of the samples, one text or one per output.
        dtype: element type that is expected, one or one per output.
        ndim: dimensions of a sample that are expected, one or one per output.
        cuda_stream: accepted; data on a device are used in the order of torch's current stream.
        use_copy_kernel: accepted, without effect.
        blocking: whether a run waits for data that have not been fed yet; accepted: a missing feed is an error.
        batch: whether the source gives whole batches (the default) or single samples.
        repeat_last: with fed data, use the last batch again when no new one was fed.
        parallel: call the source in worker processes.
        no_copy: use the data where they lie; the user must not change them while they are in use.
        prefetch_queue_depth: batches that workers prepare ahead (only with ``parallel``).
        batch_info: whether a callable for batches gets a ``BatchInfo`` instead of the number of the iteration.

    Returns:
        one output per item, on the CPU unless ``device="gpu"``.

    Example:
        >>> images = fn.external_source(source=lambda: np.zeros((4, 8, 8, 3), np.uint8), layout="HWC")
    """
    del source, cycle, cuda_stream, use_copy_kernel, blocking, batch, repeat_last, no_copy, batch_info
    if prefetch_queue_depth is not None and not parallel:
        raise ArgumentValueError("prefetch_queue_depth is for parallel=True only; the pipeline has its own queue.")
    specs: list[Spec] = []
    for index in range(num_outputs or 1):
        letters = _item(layout, index, num_outputs)
        dimensions = _item(ndim, index, num_outputs)
        element: DALIDataType | None = _item(dtype, index, num_outputs)
        if letters:
            dimensions = len(letters)
        specs.append(Spec(element, dimensions, letters or ("" if dimensions is not None else None)))
    return tuple(specs)


def _item(value: Any, index: int, num_outputs: int | None) -> Any:
    """Return what was declared for one output: the value itself, or its item where a list was given."""
    if num_outputs is not None and isinstance(value, Sequence) and not isinstance(value, str):
        return value[index] if index < len(value) else None
    return value
