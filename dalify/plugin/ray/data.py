"""Pipelines for Ray Data, as a function for ``map_batches`` or as a data source."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Self

import numpy as np

from dalify import fn
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, GraphError
from dalify.base.source_line import SourceLine
from dalify.base.wording import counted
from dalify.data import tensor_list
from dalify.executor.batch_source import Request
from dalify.executor.batch_worker import BatchWorker
from dalify.executor.engine import Engine
from dalify.executor.iteration import Iteration
from dalify.executor.remote import BatchService, RemoteParts, Replies
from dalify.pipeline import Pipeline, pipeline_def
from dalify.pipeline.pipeline import parts_of
from dalify.plugin.ray.package import ray, ray_block, ray_datasource
from dalify.plugin.ray.worker import loaded_worker, pickled_for_ray

_ROW_NUMBERS_END = 1 << 32  # the random numbers of a sample depend on 32 bits of its number


class PipelineMapper:
    """Runs a pipeline on the columns of a dataset, for ``ray.data.Dataset.map_batches``.

    Ray creates one mapper per actor; the mapper builds its pipeline once.

    Args:
        function: function of one graph value per column that returns the outputs, also graph values.
        columns: names of the input columns, in the order of the function's parameters. Other columns are dropped.
        outputs: names of the output columns.
        batch_size: maximum number of rows in a batch; at least the batch size of ``map_batches``.
        layouts: layouts by column name, for instance ``{"image": "HWC"}``.
        row_numbers: name of a column with a unique integer in [0, 2**32 - 1] per row, such as ``id`` of
            ``ray.data.range``. The random numbers of a row then depend only on its number, not on the actor or the
            batch that Ray assigns it to. Requires ``seed``. Without this column random numbers cannot be reproduced,
            because Ray provides no row or block numbers that are independent of its schedule.
            ``fn.batch_permutation`` and Python functions with their own random numbers ignore the row numbers.
        options: options of the pipeline, such as ``num_threads`` and ``seed``. With a seed and without ``row_numbers``,
            all actors draw the same random numbers for their first batch, so omit the seed for augmentations.

    Raises:
        ArgumentTypeError: columns or outputs are not lists of names.
        ArgumentValueError: the number of outputs is wrong, or ``row_numbers`` is specified without a seed.

    Example:
        >>> def small(image):
        ...     return fn.resize(image, size=[224, 224])
        >>> images.map_batches(
        ...     PipelineMapper,
        ...     fn_constructor_args=(small, ["image"], ["image"]),
        ...     fn_constructor_kwargs={"batch_size": 64, "layouts": {"image": "HWC"}},
        ...     batch_size=64,
        ...     concurrency=4,
        ... )
    """

    def __init__(
        self,
        function: Callable[..., Any],
        columns: Sequence[str],
        outputs: Sequence[str],
        *,
        batch_size: int,
        layouts: Mapping[str, str] | None = None,
        row_numbers: str | None = None,
        **options: Any,
    ) -> None:
        for name, names in (("columns", columns), ("outputs", outputs)):
            if isinstance(names, str) or not all(isinstance(item, str) for item in names):
                raise ArgumentTypeError(f"{name} must be a list of names; got {names!r}.")
        if row_numbers is not None and options.get("seed") in (None, -1):
            raise ArgumentValueError(
                "row_numbers has no effect without a seed: each actor would draw its own.", hint="Add seed=1."
            )
        known = dict(layouts or {})

        @pipeline_def(batch_size=batch_size, prefetch_queue_depth=1, **options)
        def pipeline() -> Any:
            return function(*(fn.external_source(name=name, layout=known.get(name)) for name in columns))

        self._columns = list(columns)
        self._outputs = list(outputs)
        self._row_numbers = row_numbers
        self._pipe = pipeline()
        if self._pipe.num_outputs != len(self._outputs):
            raise ArgumentValueError(
                f"the function returns {counted(self._pipe.num_outputs, 'output')}, and outputs= names "
                f"{len(self._outputs)}."
            )

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs for a batch of rows.

        Args:
            batch: arrays by column name.

        Raises:
            ArgumentValueError: a column is missing, or a row number is out of range.
            ArgumentTypeError: row numbers are not integers.
        """
        needed = self._columns if self._row_numbers is None else [*self._columns, self._row_numbers]
        missing = [name for name in needed if name not in batch]
        if missing:
            raise ArgumentValueError(f"the dataset has no column {missing[0]!r}; it has {', '.join(batch)}.")
        if self._row_numbers is not None:
            engine = parts_of(self._pipe).builder.engine()
            assert isinstance(engine, Engine), "dalify bug: a batch in debug mode has row numbers"
            engine.next_rows = _checked_numbers(self._row_numbers, batch[self._row_numbers])
        given = self._pipe.run(**{name: _samples(batch[name]) for name in self._columns})
        return {name: _column(output) for name, output in zip(self._outputs, given, strict=True)}


def _checked_numbers(name: str, column: Any) -> np.ndarray[Any, Any]:
    """Return the row numbers as an array; raises if they are not integers from 0 to 2**32 - 1."""
    numbers = np.asarray(column)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        kind = f"{counted(numbers.ndim, 'axis')} of {numbers.dtype}"
        raise ArgumentTypeError(f"the column {name!r} must have one integer per row; got {kind}.")
    wrong = numbers[(numbers < 0) | (numbers >= _ROW_NUMBERS_END)]
    if len(wrong):
        raise ArgumentValueError(f"the column {name!r} must have numbers from 0 to 2**32 - 1; got {wrong[0]}.")
    return numbers


def _samples(column: Any) -> Any:
    """Return a column in a form that an external source accepts."""
    if not isinstance(column, np.ndarray) or column.dtype != object:
        return column
    return [np.frombuffer(item, np.uint8) if isinstance(item, bytes) else item for item in column]


def _column(output: Any) -> np.ndarray[Any, Any]:
    """Return samples as a column: one array, or an array of arrays if their shapes differ."""
    if output.is_dense_tensor():
        return np.array(output.as_array())
    column = np.empty(len(output), object)
    for index in range(len(output)):
        column[index] = np.array(output.at(index))
    return column


def pipeline_datasource(pipe: Pipeline, outputs: Sequence[str], *, epoch: int = 0) -> Any:
    """Return a data source that reads one epoch of a pipeline, for ``ray.data.read_datasource``.

    Rows and their order do not depend on the number of read tasks, because each task gets the numbers of its batches.
    One batch is one block.

    Args:
        pipe: a pipeline that has not run yet, with a reader without shards. All stages must be able to run in another
            process: Python functions need ``parallel=True``.
        outputs: names of the columns.
        epoch: number of the epoch; it determines the order.

    Raises:
        GraphError: a stage of the pipeline cannot run in another process.
        ArgumentValueError: there is no reader, the reader has shards, or the number of outputs is wrong.

    Example:
        >>> images = ray.data.read_datasource(pipeline_datasource(training("photos"), ["image", "label"]))
    """
    line = SourceLine.capture()
    if pipe.num_outputs != len(outputs):
        raise ArgumentValueError(
            f"the pipeline has {counted(pipe.num_outputs, 'output')}, and outputs= names {len(outputs)}.", line=line
        )
    builder = parts_of(pipe).builder
    builder.service = BatchService(1, 1, _Recorder)
    pipe.build()
    try:
        assert builder.built is not None, "dalify bug: build did not build"
        engine = builder.built.engine
        recorder = engine.remote
        assert isinstance(recorder, _Recorder), "dalify bug: an engine without the stages of its service"
        requests = list(_requests(pipe, engine, recorder, epoch, line))
        parts = recorder.parts
        if parts.plan.local.stages:
            step = parts.plan.local.stages[0].steps[0]
            raise GraphError(
                "this part of the pipeline can only run in the program's process.",
                line=step.node.line,
                operator=step.node.operator.public_name,
                hint="A Python function needs parallel=True; the device cannot be used in a data source.",
            )
    finally:
        pipe.close()
    setup = ray.put(pickled_for_ray(parts))
    return _datasource(uuid.uuid4().hex, setup, parts.plan.local.outputs, list(outputs), requests)


class _Recorder:
    """Stages that record the requests for batches and compute nothing."""

    in_progress = 1

    def __init__(self, parts: RemoteParts) -> None:
        self.parts = parts
        self.plan = parts.plan.remote
        self._replies = Replies(parts)
        self.requests: list[Request] = []

    def start(self) -> None:
        """Do nothing."""

    def submit(self, iteration: Iteration, done: Callable[[Iteration], None]) -> None:
        """Record a request."""
        self.requests.append(self._replies.request(iteration))

    def discard(self) -> None:
        """Do nothing: recorded requests are kept."""

    def renewed(self) -> Self:
        """Return itself."""
        return self

    def close(self) -> None:
        """Do nothing."""


def _requests(
    pipe: Pipeline, engine: Engine, recorder: _Recorder, epoch: int, line: SourceLine | None
) -> Iterator[tuple[Request, int]]:
    """Yield the requests for the batches of an epoch, each with its number of rows."""
    metas = list(pipe.reader_meta().values())
    if not metas:
        raise ArgumentValueError("a data source needs a pipeline with a reader, which defines its length.", line=line)
    if metas[0]["number_of_shards"] != 1:
        raise ArgumentValueError(
            "a data source reads the whole epoch.", line=line, hint="Omit shard_id, num_shards and shard."
        )
    if epoch:
        engine.start_epoch(epoch, is_next=True)
    left = metas[0]["epoch_size"]
    while left > 0:
        engine.schedule()
        request = recorder.requests[-1]
        yield request, min(left, request.size)
        left -= request.size


_workers: dict[str, BatchWorker] = {}  # of this process, shared by the Ray tasks that run in it


def _blocks(
    key: str, setup: Sequence[Any], slots: Sequence[int], names: Sequence[str], batches: Sequence[tuple[Request, int]]
) -> Iterator[Any]:
    """Yield the computed batches as blocks, in a Ray task."""
    worker = _workers.get(key)
    if worker is None:
        while _workers:
            _workers.popitem()[1].close()
        worker = _workers[key] = loaded_worker(setup)
    for request, rows in batches:
        values = worker.compute(request).values
        columns = {}
        for name, slot in zip(names, slots, strict=True):
            batch = values[slot]
            assert batch is not None, "dalify bug: an output without samples"
            columns[name] = _column(tensor_list(batch))[:rows]
        yield ray_block.BlockAccessor.batch_to_block(columns)


def _datasource(key: str, setup: Any, slots: Sequence[int], names: list[str], requests: list[Any]) -> Any:
    class PipelineDatasource(ray_datasource.Datasource):
        """One epoch of a pipeline."""

        def estimate_inmemory_data_size(self) -> int | None:
            """Return None: the size is not known before batches are computed."""
            return None

        def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[Any]:
            """Return read tasks, each for consecutive batches."""
            size = -(-len(requests) // max(1, parallelism))
            tasks = []
            for start in range(0, len(requests), size):
                batches = requests[start : start + size]
                facts = dict.fromkeys((field.name for field in fields(ray_block.BlockMetadata)), None)
                facts["num_rows"] = sum(rows for _, rows in batches)
                # In a list, because Ray resolves references that are direct arguments.
                read = partial(_blocks, key, [setup], slots, names, batches)
                tasks.append(ray_datasource.ReadTask(read, ray_block.BlockMetadata(**facts)))
            return tasks

    return PipelineDatasource()
