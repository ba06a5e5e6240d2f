"""Runs pipelines in TensorFlow, one per iterator of a dataset; other datasets may feed them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DTypeError, PipelineStateError, ShapeError
from dalify.base.wording import counted
from dalify.data import TensorListCPU, TensorListGPU, batch_of
from dalify.graph import Node
from dalify.pipeline import Pipeline
from dalify.plugin.frameworks import framework

tf = framework("tensorflow", plugin="tf")


@dataclass(frozen=True)
class Input:
    """A dataset that feeds an external source of a pipeline.

    Args:
        dataset: a ``tf.data.Dataset``.
        layout: layout of its samples; None for the layout of the external source.
        batch: True if its elements are batches, False if they are samples; None as in the external source.
    """

    dataset: Any
    layout: str | None = None
    batch: bool | None = False


def checked_inputs(pipeline: Pipeline, given: Mapping[str, Any]) -> dict[str, Input]:
    """Return the dataset for each external source without a source.

    Args:
        pipeline: the pipeline with the external sources.
        given: datasets, or `Input` of datasets, by the names of the external sources.

    Raises:
        ArgumentTypeError: a value is not a dataset.
        ArgumentValueError: a name does not exist in the pipeline, an external source has no dataset, or it has a
            source.
    """
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(f"input_datasets must be a dictionary with names as keys; got {type(given).__name__}.")
    nodes = pipeline.external_sources()
    open_names = {node.name: node for node in nodes if node.arguments.get("source") is None}
    for name, value in given.items():
        if name not in open_names:
            known = ", ".join(repr(each) for each in open_names) or "none"
            raise ArgumentValueError(
                f"input_datasets has the name {name!r}; the external sources without a source are: {known}.",
                hint="Create the external_source with that name and without a source.",
            )
        dataset = value.dataset if isinstance(value, Input) else value
        if not isinstance(dataset, tf.data.Dataset):
            raise ArgumentTypeError(f"the input {name!r} must be a tf.data.Dataset; got {type(dataset).__name__}.")
    missing = [name for name in open_names if name not in given]
    if missing:
        raise ArgumentValueError(
            f"the external_source {missing[0]!r} of the pipeline has no source and no dataset.",
            hint="Specify its name, and use experimental.DALIDatasetWithInputs(pipeline, input_datasets={name: ...}).",
        )
    return {name: _completed(value, open_names[name]) for name, value in given.items()}


def _completed(value: Any, node: Node) -> Input:
    """Return the input with the options of the external source."""
    given = value if isinstance(value, Input) else Input(value)
    declared = node.arguments.get("layout")
    if given.layout and declared and given.layout != declared:
        raise ArgumentValueError(
            f"the input {node.name!r} has the layout {given.layout!r}, but its external_source has {declared!r}."
        )
    by_batch = given.batch
    if by_batch is None:
        by_batch = bool(node.arguments.get("batch", True))
    return Input(given.dataset, given.layout or declared, by_batch)


class Fitting:
    """Converts outputs to the declared types and shapes of a dataset."""

    def __init__(self, dtypes: Sequence[Any], shapes: Sequence[Any]) -> None:
        self._dtypes = dtypes
        self._shapes = shapes

    def __call__(self, outputs: Sequence[TensorListCPU | TensorListGPU]) -> tuple[np.ndarray[Any, Any], ...]:
        """Return the arrays of a batch.

        Raises:
            ArgumentValueError: the number of outputs differs from the declared one.
            ShapeError: samples differ in shape, or the shape differs from the declared one.
            DTypeError: the element type differs from the declared one.
        """
        if len(outputs) != len(self._dtypes):
            raise ArgumentValueError(
                f"output_dtypes has {len(self._dtypes)} types, but the pipeline has {counted(len(outputs), 'output')}."
            )
        return tuple(self._fitted(index, output) for index, output in enumerate(outputs))

    def _fitted(self, index: int, output: TensorListCPU | TensorListGPU) -> np.ndarray[Any, Any]:
        hint = "Make their sizes equal in the pipeline with fn.resize, fn.crop or fn.pad."
        batch_of(output).check_uniform(f"the samples of output {index}", hint)
        array = np.asarray(output.as_cpu().as_tensor())
        wanted, shape = self._dtypes[index], self._shapes[index]
        if tf.as_dtype(array.dtype) != wanted:
            raise DTypeError(
                f"output {index} has elements of {array.dtype.name}, but output_dtypes specifies {wanted.name}.",
                hint=f"Declare tf.{array.dtype.name}, or convert it in the pipeline with fn.cast.",
            )
        if shape.rank is None or shape.is_compatible_with(array.shape):
            return array
        kept = _squeezed(array.shape, shape)
        if kept is None:
            raise ShapeError(
                f"output {index} has the shape {array.shape}, but output_shapes specifies {tuple(shape)}.",
                hint="The first dimension is the batch size; None means any extent.",
            )
        return array.reshape(kept)


def _squeezed(shape: tuple[int, ...], wanted: Any) -> list[int] | None:
    """Return the shape without excess dimensions of extent 1; None if it does not match."""
    ones = [axis for axis, extent in enumerate(shape) if extent == 1]
    for dropped in itertools.combinations(reversed(ones), max(len(shape) - wanted.rank, 0)):
        kept = [extent for axis, extent in enumerate(shape) if axis not in dropped]
        if wanted.is_compatible_with(kept):
            return kept
    return None


def batches(
    make: Callable[[], Pipeline], inputs: Mapping[str, Input], fit: Callable[[Any], tuple[Any, ...]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the batches of a new pipeline until its sources, or the datasets that feed it, end.

    Args:
        make: creates the pipeline.
        inputs: datasets by the names of its external sources.
        fit: converts outputs to the declared types and shapes.
    """
    pipeline = make()
    try:
        fed = _fed(inputs, pipeline.max_batch_size)
        in_progress = 0
        depth = max(1, pipeline.cpu_queue_size) if pipeline.exec_pipelined else 1
        while True:
            if inputs:
                for batch in itertools.islice(fed, depth - in_progress):
                    for name, data in batch.items():
                        pipeline.feed_input(name, data, inputs[name].layout)
                    in_progress += 1
                if not in_progress:
                    return
                in_progress -= 1
            try:
                outputs = pipeline.run()
            except StopIteration:
                return
            yield fit(outputs)
    finally:
        pipeline.close()


def _fed(inputs: Mapping[str, Input], batch_size: int) -> Iterator[dict[str, Any]]:
    """Yield the data for each batch by input name, until the end of the shortest dataset."""
    sources = {name: _batched(name, each, batch_size) for name, each in inputs.items()}
    while True:
        batch: dict[str, Any] = {}
        for name, source in sources.items():
            data = next(source, None)
            if data is None:
                return
            batch[name] = data
        shortest = min(len(data) for data in batch.values())
        yield {name: data[:shortest] for name, data in batch.items()}


def _batched(name: str, given: Input, batch_size: int) -> Iterator[Any]:
    elements = given.dataset.as_numpy_iterator()
    if not given.batch:
        while samples := list(itertools.islice(elements, batch_size)):
            yield [_array(name, sample) for sample in samples]
        return
    for element in elements:
        array = _array(name, element)
        if len(array) > batch_size:
            raise PipelineStateError(
                f"the input {name!r} returned a batch of {counted(len(array), 'sample')}, but the maximum of the "
                f"pipeline is {batch_size}."
            )
        yield array


def _array(name: str, element: Any) -> np.ndarray[Any, Any]:
    if isinstance(element, (tuple, list, dict)):
        raise ArgumentTypeError(
            f"the elements of the dataset for the input {name!r} have several tensors; an input needs one.",
            hint="Map it to one of them, or create an external_source for each.",
        )
    return np.asarray(element)
