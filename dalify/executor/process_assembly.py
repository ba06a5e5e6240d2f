"""Creates the worker processes of a pipeline: for parallel sources, for readers, and for batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dalify.base.errors import ArgumentValueError, DalifyError, GraphError, PipelineStateError
from dalify.base.limits import current, within
from dalify.data import BufferPool
from dalify.data.entries import Entries
from dalify.executor.batch_source import RemoteStages
from dalify.executor.batch_worker import WorkerSetup
from dalify.executor.meter import Meter
from dalify.executor.options import EngineSetup, PipelineOptions
from dalify.executor.plan_split import SplitPlan
from dalify.executor.process_stages import ProcessStages
from dalify.executor.read_ahead import ReadAhead
from dalify.executor.reader_step import ReaderStep
from dalify.executor.remote import RemoteParts
from dalify.executor.runnable_graph import RunnableGraph
from dalify.graph import Node
from dalify.sources.reader_processes import ReaderProcesses
from dalify.sources.worker_pool import WorkerPool


def source_workers(node: Node, options: PipelineOptions) -> WorkerPool:
    """Return the worker processes of the parallel sources of a pipeline, before they start.

    Args:
        node: the first of these sources.
        options: options of the pipeline.

    Raises:
        PipelineStateError: the options exclude worker processes.
    """
    if not options.py_num_workers:
        raise PipelineStateError(
            "parallel=True needs worker processes, but the pipeline has none.",
            line=node.line,
            operator=node.operator.public_name,
            hint="Set py_num_workers of the pipeline to 1 or more, or omit parallel.",
        )
    return WorkerPool(
        options.py_num_workers, options.py_start_method, options.py_callback_pickler, options.callback_timeout_s
    )


def check_parts(parts: SplitPlan, reading: Mapping[Node, int]) -> None:
    """Check that other processes can compute a graph.

    Args:
        parts: the plan of the graph.
        reading: number of processes of each reader.

    Raises:
        ArgumentValueError: a reader also has processes.
        GraphError: no stage can run in the processes.
    """
    for step in parts.remote.readers.values():
        if reading[step.node]:
            raise ArgumentValueError(
                "the reader and the pipeline both have processes=.",
                line=step.node.line,
                operator=step.node.operator.public_name,
                hint="Omit processes= in the reader: the processes of the pipeline also read the samples.",
            )
    if not parts.remote.stages:
        first = next((step.node for stage in parts.local.stages for step in stage.steps if stage.is_serial), None)
        raise GraphError(
            "the processes of this pipeline have nothing to compute: all operators are external sources, run on the "
            "GPU, or are Python functions that are called for one batch after the other.",
            line=None if first is None else first.line,
            operator=None if first is None else first.operator.public_name,
            hint="Write fn.python_function(..., parallel=True) for a function that depends only on its inputs, or "
            "omit processes=.",
        )


def read_by_processes(
    step: ReaderStep, index: Entries[Any], count: int, options: PipelineOptions, seed: int
) -> ReadAhead:
    """Start the processes that read for a step, before dalify starts threads; return the `ReadAhead` that uses them.

    Raises:
        DalifyError: the processes cannot be started.
    """
    read = within(options.limits, step.reads_alone())
    processes = ReaderProcesses(
        index,
        read,
        count,
        options.py_start_method,
        options.py_callback_pickler,
        seed,
        options.callback_timeout_s,
        step.node.operator.public_name,
    )
    try:
        processes.start()
    except DalifyError as error:
        step.node.locate(error)
        raise
    ahead = ReadAhead(index, read, processes)
    step.read_ahead(ahead)
    return ahead


def remote_stages(
    parts: SplitPlan,
    feed_numbers: Sequence[int],
    runnable: RunnableGraph,
    setup: EngineSetup,
    pool: BufferPool,
    meter: Meter | None,
) -> RemoteStages:
    """Start the processes that compute batches.

    Args:
        parts: the parts of the plan for other processes and for this one.
        feed_numbers: numbers of the readers among the feeds.
        runnable: the graph that the workers receive.
        setup: the options of the pipeline.
        pool: memory for the outputs.
        meter: collects measurements; None if not requested.
    """
    options, service = setup.options, setup.service
    worker_setup = WorkerSetup(
        runnable=runnable,
        seed=setup.seed,
        num_threads=max(1, round(options.num_threads / runnable.processes)) if service is None else service.threads,
        batch_size=options.batch_size,
        limits=options.limits or current(),
        measures=options.enable_memory_stats,
        device_id=options.device_id if service is None else None,  # other machines have other devices
    )
    remote_parts = RemoteParts(
        parts, sorted(feed_numbers), worker_setup, pool, meter, options.callback_timeout_s, options.py_callback_pickler
    )
    remote: RemoteStages = (
        ProcessStages(remote_parts, runnable.processes, options.depth, options.py_start_method)
        if service is None
        else service.stages(remote_parts)
    )
    remote.start()
    return remote
