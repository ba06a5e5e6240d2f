"""``DALIDataset``: a pipeline as a ``tf.data.Dataset``, for ``model.fit``, ``take``, ``prefetch`` and strategies."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from dalify.base.deprecation import warn_deprecated
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, UnknownArgumentError
from dalify.base.wording import counted
from dalify.pipeline import Pipeline
from dalify.plugin.frameworks import framework
from dalify.plugin.tf.running import Fitting, batches, checked_inputs

tf = framework("tensorflow", plugin="tf")


class PipelineDataset(tf.data.Dataset):  # pyright: ignore[reportUntypedBaseClass] -- the package may be absent
    """The base class of ``DALIDataset`` and ``experimental.DALIDatasetWithInputs``.

    See ``DALIDataset`` for the arguments; `input_datasets` has datasets by the names of external sources, and `dtypes`
    and `shapes` are deprecated names of `output_dtypes` and `output_shapes`.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        output_dtypes: Any = None,
        output_shapes: Any = None,
        fail_on_device_mismatch: bool = True,
        *,
        input_datasets: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        num_threads: int | None = None,
        device_id: int | None = None,
        exec_separated: bool = False,
        exec_dynamic: bool = False,
        prefetch_queue_depth: int | None = None,
        cpu_prefetch_queue_depth: int | None = None,
        gpu_prefetch_queue_depth: int | None = None,
        dtypes: Any = None,
        shapes: Any = None,
    ) -> None:
        if not isinstance(pipeline, Pipeline):
            raise ArgumentTypeError(
                f"DALIDataset needs a pipeline; got {type(pipeline).__name__}.",
                hint="Call the function decorated with pipeline_def.",
            )
        output_dtypes = _renamed("dtypes", dtypes, "output_dtypes", output_dtypes)
        output_shapes = _renamed("shapes", shapes, "output_shapes", output_shapes)
        options = {
            "batch_size": batch_size,
            "num_threads": num_threads,
            "device_id": device_id,
            "prefetch_queue_depth": prefetch_queue_depth,
        }
        chosen = {name: value for name, value in options.items() if value is not None}
        make = functools.partial(pipeline.copy, **chosen)
        self._feeding = checked_inputs(pipeline, {} if input_datasets is None else input_datasets)
        if output_dtypes is None:
            output_dtypes, found = _found(functools.partial(batches, make, self._feeding, _described))
            output_shapes = found if output_shapes is None else output_shapes
        signature = _signature(output_dtypes, output_shapes, pipeline.num_outputs)
        flat = signature if isinstance(signature, tuple) else (signature,)
        fit = Fitting([each.dtype for each in flat], [each.shape for each in flat])
        feeding = self._feeding

        def generate() -> Any:
            made = batches(make, feeding, fit)
            return made if isinstance(signature, tuple) else (batch[0] for batch in made)

        self._inner = tf.data.Dataset.from_generator(generate, output_signature=signature)
        super().__init__(self._inner._variant_tensor)

    def _inputs(self) -> list[Any]:
        return [self._inner]

    @property
    def element_spec(self) -> Any:
        """Types and shapes of a batch."""
        return self._inner.element_spec


class DALIDataset(PipelineDataset):
    """A pipeline as a ``tf.data.Dataset``.

    Every iterator creates its own pipeline, which starts at the first batch. It ends with the external sources of the
    pipeline. A pipeline with readers is infinite, so ``model.fit`` needs ``steps_per_epoch``, or use ``take``.

    Args:
        pipeline: defines the batches; it is not run itself. Sources that are Python functions are called in the
            TensorFlow thread that requests a batch.
        output_dtypes: a TensorFlow type, or a tuple with one per output. None: one batch of a pipeline is computed to
            determine them.
        output_shapes: shapes of batches, or one shape; None is any extent or any shape. Dimensions of extent 1 that a
            shape does not contain are removed: labels ``[N, 1]`` can be declared as ``[N]``.
        fail_on_device_mismatch: accepted but ignored: batches are returned in host memory.
        options: batch_size, num_threads, device_id, prefetch_queue_depth: override the options of the pipeline;
            exec_separated, exec_dynamic, cpu_prefetch_queue_depth, gpu_prefetch_queue_depth: ignored.

    Raises:
        ArgumentValueError: an external source has no source, or the number of shapes is not the number of outputs.

    Example:
        >>> dataset = DALIDataset(pipe, output_dtypes=(tf.float32, tf.int64), output_shapes=((None, 28, 28), (None,)))
        >>> model.fit(dataset, steps_per_epoch=100)
    """

    def __init__(
        self,
        pipeline: Pipeline,
        output_dtypes: Any = None,
        output_shapes: Any = None,
        fail_on_device_mismatch: bool = True,
        **options: Any,
    ) -> None:
        if "input_datasets" in options:
            raise UnknownArgumentError(
                "DALIDataset does not accept input_datasets.", hint="experimental.DALIDatasetWithInputs does."
            )
        super().__init__(pipeline, output_dtypes, output_shapes, fail_on_device_mismatch, **options)


def _renamed(old: str, old_value: Any, new: str, value: Any) -> Any:
    if old_value is None:
        return value
    if value is not None:
        raise ArgumentValueError(f"{old} is an old name of {new}; specify only one of them.")
    warn_deprecated(f"{old} is now {new}.")
    return old_value


def _described(outputs: Any) -> tuple[Any, ...]:
    return tuple((tf.as_dtype(output.dtype.numpy), (None,) * (output.ndim() + 1)) for output in outputs)


def _found(first: Any) -> tuple[Any, Any]:
    """Return types and shapes of the outputs, from the first batch of a pipeline."""
    running = first()
    try:
        described = next(running, None)
    finally:
        running.close()
    if described is None:
        raise ArgumentValueError(
            "the pipeline ended before its first batch, so its types are unknown.", hint="Specify output_dtypes."
        )
    return tuple(dtype for dtype, _ in described), tuple(shape for _, shape in described)


def _signature(dtypes: Any, shapes: Any, count: int) -> Any:
    """Return the specs of the outputs: one for a single type, otherwise a tuple."""
    found = len(dtypes) if isinstance(dtypes, (tuple, list)) else 1
    if found != count:
        raise ArgumentValueError(
            f"output_dtypes has {counted(found, 'type')}, but the pipeline has {counted(count, 'output')}."
        )
    if not isinstance(dtypes, (tuple, list)):
        return tf.TensorSpec(tf.TensorShape(shapes), tf.as_dtype(dtypes))
    if shapes is None:
        shapes = (None,) * count
    if not isinstance(shapes, (tuple, list)) or len(shapes) != count:
        raise ArgumentValueError(
            f"output_shapes must be a tuple with one shape for each of the {count} outputs; got {shapes!r}."
        )
    pairs = zip(dtypes, shapes, strict=True)
    return tuple(tf.TensorSpec(tf.TensorShape(shape), tf.as_dtype(dtype)) for dtype, shape in pairs)


def dataset_options() -> Any:
    """Return options of ``tf.data`` for a dataset of a pipeline, without tuning: the pipeline has its own threads."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options


def dataset_compatible_tensorflow() -> bool:
    """Return whether this TensorFlow supports ``DALIDataset``, its inputs, and its distribution: always True."""
    return True


dataset_inputs_compatible_tensorflow = dataset_distributed_compatible_tensorflow = dataset_compatible_tensorflow
