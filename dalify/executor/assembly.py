"""Creates an engine from an optimized graph: device, indices of readers, sources.

``executor/process_assembly.py`` creates the worker processes. It is imported only for pipelines with worker processes,
because the import takes 20 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any

from dalify.base.errors import ArgumentValueError, DalifyError, ReaderError
from dalify.base.fork_gate import working
from dalify.base.narrow import is_tuple
from dalify.base.optional import LazyModule
from dalify.base.threads import ThreadPool
from dalify.data import BufferPool
from dalify.data.entries import Entries
from dalify.data.pool import pinned
from dalify.executor.device_steps import find_device, has_page_locked_memory
from dalify.executor.engine import Engine
from dalify.executor.feeds import ExternalFeed, Feeds
from dalify.executor.meter import Meter
from dalify.executor.options import EngineSetup, PipelineOptions
from dalify.executor.packages import check_packages, check_remote_package
from dalify.executor.plan import Plan
from dalify.executor.plan_split import split_plan
from dalify.executor.resources import Resources
from dalify.executor.runnable_graph import RunnableGraph
from dalify.executor.staging import with_staging
from dalify.executor.steps import described, is_foreign, located
from dalify.graph import Graph, Node, rule_arguments
from dalify.registry import READER_PARAMETERS, Reader
from dalify.sources.sampler import Sampler
from dalify.sources.sampler_options import SamplerOptions
from dalify.sources.selection import bind_sampler
from dalify.sources.sharding import resolve_shard

if TYPE_CHECKING:
    from dalify.executor import process_assembly
else:
    process_assembly = LazyModule("dalify.executor.process_assembly", "creating worker processes")


def assemble(
    graph: Graph, seeds: Mapping[int, tuple[int, int]], setup: EngineSetup, device_node: Node | None
) -> Engine:
    """Return the engine that runs a graph.

    Args:
        graph: the graph after all passes.
        seeds: seed and stream by the number of a random node or reader.
        setup: the options of the pipeline.
        device_node: the node that requested the device, for the error message; None for the first one on the device.

    Raises:
        DalifyError: a reader finds no data, a source is not usable, or there is no device; with operator and the
            user's line.
    """
    options, state = setup.options, setup.state
    nodes = graph.nodes()
    check_packages(nodes)
    device_nodes = [node for node in nodes if node.output_device == "gpu"]
    torch_device = find_device(options.device_id, device_node or device_nodes[0]) if device_nodes else None
    indices = {
        node: _index(node, node.operator, options.on_error) for node in nodes if isinstance(node.operator, Reader)
    }
    count = options.processes if setup.service is None else setup.service.workers
    runnable = RunnableGraph(
        graph=graph,
        seeds={node: seeds[node.number] for node in nodes if node.operator.is_random},
        indices=indices,
        samplers={node: _sampler(node, index, seeds[node.number][0]) for node, index in indices.items()},
        on_error=options.on_error,
        processes=count,
    )
    plan, readers, recovery = runnable.plan(options.max_error_rate)
    pool = BufferPool()
    pinned_pool = BufferPool(pinned) if plan.pinned else pool
    parallel = next((node for node, _ in plan.externals if node.arguments.get("parallel")), None)
    workers = None if parallel is None else process_assembly.source_workers(parallel, options)
    externals = [
        ExternalFeed(
            node,
            slots,
            options.batch_size,
            pool if plan.pinned.isdisjoint(slots) else pinned_pool,
            torch_device,
            workers,
        )
        for node, slots in plan.externals
    ]
    reading = {node: index.processes for node, index in indices.items()}
    _check_timeout(options, bool(count or workers is not None or any(reading.values())))
    plan.describe_kernels(torch_device)  # tests Triton now, because compilation would delay the first batch
    parts = split_plan(plan) if count else None
    here = plan if parts is None else parts.local
    if torch_device is not None and has_page_locked_memory(torch_device):
        given = {slot for _, slots in plan.externals for slot in slots}
        here = with_staging(here, given.union(() if parts is None else parts.remote.outputs))
    if parts is not None:
        process_assembly.check_parts(parts, reading)
    with ExitStack() as started:  # closes started objects after an error
        for step in here.readers.values():
            node = step.node
            if reading[node]:
                seed, _ = seeds[node.number]
                ahead = process_assembly.read_by_processes(step, indices[node], reading[node], options, seed)
                started.callback(ahead.close)
        feeds = Feeds(externals, readers, workers)
        if state is not None:  # before workers start, because they need the number of items of an iterable to skip
            feeds.restore(state["sources"])
        if workers is not None:
            for feed in externals:
                if feed.node.arguments.get("parallel"):  # generators in this process continue in the next attempt
                    started.callback(feed.close)
            started.callback(workers.close)
            workers.start()  # before dalify starts threads, because a fork copies the locks that threads hold
        meter = Meter(here, None if parts is None else parts.remote) if options.enable_memory_stats else None
        remote = None
        if parts is not None:
            numbers = [feed.number for feed in readers.values()]
            remote = process_assembly.remote_stages(parts, numbers, runnable, setup, pool, meter)
            started.callback(remote.close)
        num_threads = options.num_threads if parts is None else _threads_beside(here, options.num_threads)
        threads = ThreadPool(num_threads, setup.name)
        resources = Resources(
            threads=threads,
            pool=pool,
            pinned_pool=pinned_pool,
            torch_device=torch_device,
            device_id=options.device_id,
            limits=options.limits,
        )
        engine = Engine(here, feeds, recovery, options.batch_size, resources, remote, meter)
        started.pop_all()
    engine.next_number = 0 if state is None else state["number"]
    return engine


def _threads_beside(plan: Plan, num_threads: int) -> int:
    """Return the number of threads that this process can use for its own stages."""
    if any(stage.kind == "segment" for stage in plan.stages):
        return num_threads
    return min(num_threads, len(plan.stages))


def _check_timeout(options: PipelineOptions, has_processes: bool) -> None:
    if options.callback_timeout_s is not None and not has_processes:
        raise ArgumentValueError(
            "callback_timeout_s limits calls in worker processes, but this pipeline has none.",
            hint="Write fn.external_source(..., parallel=True) or fn.readers.dataset(..., processes=2); a Python "
            "function in this process cannot be interrupted. Or omit callback_timeout_s.",
        )


def shard_of(graph: Graph) -> tuple[int, int] | None:
    """Return ``shard_id`` and ``num_shards`` of the first reader; None without readers."""
    readers = [node for node in graph.nodes() if isinstance(node.operator, Reader)]
    return resolve_shard(rule_arguments(readers[0])) if readers else None


def _index(node: Node, operator: Reader, on_error: str) -> Entries[Any]:
    arguments = {name: value for name, value in rule_arguments(node).items() if name not in READER_PARAMETERS}
    try:
        with nullcontext() if operator.runs_user_code else working():
            index = operator.index_function(**arguments)
        if index.first_error is not None and (node.arguments.get("on_error") or on_error) == "raise":
            raise index.first_error
    except Exception as error:
        if is_foreign(error, node):  # raised by a library, without the name of the file
            message = f"the data cannot be opened: {_places(node)} ({described(error)})."
            raise located(ReaderError(message), node) from error
        raise located(error, node) from error.__cause__
    if index.is_remote:
        check_remote_package(node)
    if not len(index):
        raise ReaderError(
            f"there is nothing to read in {_places(node)}.", line=node.line, operator=operator.public_name
        )
    return index


def _places(node: Node) -> str:
    """Return the text of a reader's path arguments, for messages."""
    found: list[str] = []
    for name, value in node.arguments.items():
        items: tuple[Any, ...] = value if is_tuple(value) else (value,)
        if items and name not in READER_PARAMETERS and all(isinstance(item, str) for item in items):
            found.append(f"{name}={(items[0] if len(items) == 1 else list(items))!r}"[:300])
    return ", ".join(found) or "the data"


def _sampler(node: Node, index: Entries[Any], seed: int) -> Sampler:
    arguments = rule_arguments(node)
    names = (
        "random_shuffle",
        "initial_fill",
        "shuffle_after_epoch",
        "stick_to_shard",
        "pad_last_batch",
    )
    try:
        selection = None if arguments["sampler"] is None else bind_sampler(arguments["sampler"], index)
        shard_id, num_shards = resolve_shard(arguments)
        file_sizes = index.file_sizes if selection is None else None
        return Sampler(
            SamplerOptions(
                len(index) if selection is None else selection.size,
                shard_id,
                num_shards,
                **{name: arguments[name] for name in names},
                seed=seed,
                shuffle_after_epoch_seed=arguments["shuffle_after_epoch_seed"] or 0,
                by_file=file_sizes is not None,
            ),
            selection,
            # Only for an index with entries in blocks; a sampler draws single entries.
            index.blocks if selection is None else None,
            file_sizes,
        )
    except DalifyError as error:
        node.locate(error)
        raise
