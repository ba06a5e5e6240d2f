"""``DALIIterator``: the next batch of a pipeline as a TensorFlow operation, also in graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.base.wording import counted
from dalify.pipeline import Pipeline
from dalify.plugin.frameworks import framework
from dalify.plugin.tf.running import Fitting

tf = framework("tensorflow", plugin="tf")


def serialize_pipeline(pipeline: Pipeline) -> bytes:
    """Return the serialized pipeline; see ``Pipeline.serialize``."""
    return pipeline.serialize()


def DALIIterator() -> Callable[..., list[Any]]:  # noqa: N802 -- DALI's name
    """Return the function ``DALIIteratorWrapper``."""
    return DALIIteratorWrapper


DALIRawIterator = DALIIterator  # for programs that pass serialized pipelines


def DALIIteratorWrapper(  # noqa: N802 -- DALI's name
    pipeline: Pipeline | None = None,
    serialized_pipeline: bytes | str | None = None,
    sparse: Sequence[bool] = (),
    shapes: Sequence[Any] = (),
    dtypes: Sequence[Any] = (),
    batch_size: int = -1,
    prefetch_queue_depth: int = 2,
    exec_dynamic: bool | None = None,
    **kwargs: Any,
) -> list[Any]:
    """Return the outputs of a pipeline as tensors: in a graph, each run of the session returns the next batch.

    In eager mode, it returns the next batch of the pipeline immediately.

    Args:
        pipeline: the pipeline, instead of `serialized_pipeline`.
        serialized_pipeline: result of ``serialize_pipeline``; a new pipeline is created from it.
        sparse: accepted if no element is true.
        shapes: shapes of the batches, one per output.
        dtypes: TensorFlow types, one per output.
        batch_size: batch size of a serialized pipeline; -1: the serialized value.
        prefetch_queue_depth: prefetch depth of a serialized pipeline.
        exec_dynamic: accepted but ignored.
        kwargs: num_threads, device_id: options of a serialized pipeline; others are accepted.

    Raises:
        ArgumentTypeError: neither or both of `pipeline` and `serialized_pipeline` are specified.
        ArgumentValueError: sparse tensors are requested, or the number of types is not the number of outputs.
    """
    if (pipeline is None) == (serialized_pipeline is None):
        raise ArgumentTypeError("DALIIterator needs either pipeline=... or serialized_pipeline=....")
    if any(sparse):
        raise ArgumentValueError(
            "DALIIterator does not support sparse tensors.",
            hint="Pad the samples with fn.pad, or use DALIGenericIterator.",
        )
    if pipeline is None:
        options = {name: kwargs[name] for name in ("num_threads", "device_id") if kwargs.get(name) is not None}
        if batch_size > 0:
            options["batch_size"] = batch_size
        pipeline = Pipeline.deserialize(serialized_pipeline, prefetch_queue_depth=prefetch_queue_depth, **options)
    if len(dtypes) != pipeline.num_outputs:
        raise ArgumentValueError(
            f"dtypes has {len(dtypes)} types, but the pipeline has {counted(pipeline.num_outputs, 'output')}.",
            hint="Specify dtypes=[...] with one TensorFlow type per output.",
        )
    if shapes and len(shapes) != len(dtypes):
        raise ArgumentValueError(
            f"shapes has {counted(len(shapes), 'entry')}, but the pipeline has {len(dtypes)} outputs."
        )
    wanted = [tf.TensorShape(shape) for shape in (shapes or [None] * len(dtypes))]
    fit = Fitting([tf.as_dtype(dtype) for dtype in dtypes], wanted)
    running = pipeline

    def next_batch() -> tuple[Any, ...]:
        return fit(running.run())

    tensors = tf.numpy_function(next_batch, [], list(dtypes), stateful=True)
    for tensor, shape in zip(tensors, wanted, strict=True):
        tensor.set_shape(shape)
    return list(tensors)
