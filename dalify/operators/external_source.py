"""Data from Python: a callable, an iterable, a generator function, or batches passed to ``feed_input``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.registry import Spec, fed_source
from dalify.sources.declaration import declarations


def _count(arguments: Mapping[str, Any]) -> int:
    return max(1, arguments.get("num_outputs") or 1)


def _effect(arguments: Mapping[str, Any]) -> str:
    """Without a source, data comes from ``feed_input`` and no Python code runs."""
    return "" if arguments.get("source") is None else "runs Python code"


@fed_source(outputs=_count, user_code=True, effect=_effect)
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
    """Read data from a Python source.

    Samples are NumPy arrays, torch tensors, numbers, Pillow images, or strings and bytes, which become uint8 ``[n]``.
    Iterable datasets of PyTorch or Hugging Face can be used with ``batch=False``; if they have ``state_dict()`` and
    ``load_state_dict()``, a restored pipeline continues without repeating iterations.

    Args:
        source: a callable with zero or one argument, an iterable, or a generator function; None if data is passed
            to ``Pipeline.feed_input`` or ``Pipeline.run(name=data)``.
        num_outputs: None if the source returns one item. Otherwise it returns tuples or dictionaries with this number
            of items, and the result is a list of graph values; keys are ordered as in the first dictionary.
        cycle: what happens at the end of an iterable: None or "no" (the data ends), "quiet" or True (it restarts),
            "raise" (StopIteration is raised once, then it restarts).
        layout: layout of the samples, one string or one per output.
        dtype: expected element type, one or one per output.
        ndim: expected number of dimensions of a sample, one or one per output.
        cuda_stream: accepted but ignored; data on a device is used in the order of torch's current stream.
        use_copy_kernel: accepted but ignored.
        blocking: wait until data is fed; otherwise, running without fed data is an error.
        batch: whether the source returns whole batches (the default) or single samples. Of single samples, an
            incomplete last batch is dropped, as in DALI.
        repeat_last: with fed data, repeat the last batch if no new one was fed.
        parallel: call the source in worker processes. A process that dies loses one batch and is replaced; an iterable
            is then replayed from its start up to the batch after the lost one.
        no_copy: use the data without a copy; it must not be modified while it is in use.
        prefetch_queue_depth: batches that workers prepare ahead (only with ``parallel``).
        batch_info: whether a callable for batches receives a ``BatchInfo`` instead of the iteration number.

    Returns:
        one output per item, on the CPU unless ``device="gpu"``.

    Example:
        >>> images = fn.external_source(source=lambda: np.zeros((4, 8, 8, 3), np.uint8), layout="HWC")
    """
    del cycle, cuda_stream, use_copy_kernel, blocking, batch, repeat_last, no_copy, batch_info
    declared = declarations(num_outputs, dtype=dtype, ndim=ndim, layout=layout)
    if prefetch_queue_depth is not None and not parallel:
        raise ArgumentValueError(
            "prefetch_queue_depth requires parallel=True; the queue of the pipeline is configured separately."
        )
    if parallel and source is None:
        raise ArgumentValueError(
            "parallel=True requires a source.", hint="Omit parallel if data is passed to feed_input."
        )
    return tuple(Spec(each.dtype, each.ndim, each.layout or (None if each.ndim is None else "")) for each in declared)
