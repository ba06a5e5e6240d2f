"""Data from the user's own Python: a callable, an iterable, a generator function, or batches fed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.registry import Spec, operator
from dalify.sources.declaration import declarations


def _count(arguments: Mapping[str, Any]) -> int:
    return max(1, arguments.get("num_outputs") or 1)


def _effect(arguments: Mapping[str, Any]) -> str:
    """Without a source, the data are fed by hand."""
    return "" if arguments.get("source") is None else "runs Python code"


@operator(outputs=_count, user_code=True, effect=_effect)
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

    Samples are arrays of numpy or torch, numbers, pictures of Pillow, and texts and bytes, which become uint8 ``[n]``.
    An iterable data set of PyTorch or Hugging Face is a source with ``batch=False``; where it has ``state_dict()`` and
    ``load_state_dict()``, a resumed pipeline goes on from there at once.

    Args:
        source: a callable (of no argument, or of one), an iterable, or a generator function; None when data are fed
            with ``Pipeline.feed_input`` or ``Pipeline.run(name=data)``.
        num_outputs: None when the source gives one item; otherwise it gives tuples or dictionaries of so many, and the
            result is a list of nodes, those of a dictionary in the order of the first one.
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
        parallel: call the source in worker processes. A process that dies costs one batch and is replaced; an iterable
            is then walked again from its beginning, up to the batch after the lost one.
        no_copy: use the data where they lie; the user must not change them while they are in use.
        prefetch_queue_depth: batches that workers prepare ahead (only with ``parallel``).
        batch_info: whether a callable for batches gets a ``BatchInfo`` instead of the number of the iteration.

    Returns:
        one output per item, on the CPU unless ``device="gpu"``.

    Example:
        >>> images = fn.external_source(source=lambda: np.zeros((4, 8, 8, 3), np.uint8), layout="HWC")
    """
    del cycle, cuda_stream, use_copy_kernel, blocking, batch, repeat_last, no_copy, batch_info
    declared = declarations(num_outputs, dtype=dtype, ndim=ndim, layout=layout)
    if prefetch_queue_depth is not None and not parallel:
        raise ArgumentValueError("prefetch_queue_depth is for parallel=True only; the pipeline has its own queue.")
    if parallel and source is None:
        raise ArgumentValueError(
            "parallel=True needs a source.", hint="Data that are fed by hand need no workers: leave parallel out."
        )
    return tuple(Spec(each.dtype, each.ndim, each.layout or (None if each.ndim is None else "")) for each in declared)
