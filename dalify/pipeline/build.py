"""From a traced graph to an engine: passes, seeds, readers' indices, sources, device."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

from dalify.base.errors import DalifyError, ReaderError
from dalify.data import BufferPool
from dalify.executor.device_steps import find_device
from dalify.executor.engine import Engine
from dalify.executor.feeds import ExternalFeed, ReaderFeed
from dalify.executor.plan import Plan, make_plan
from dalify.executor.steps import located
from dalify.graph import Graph, Node, rule_arguments
from dalify.passes import Report, optimise
from dalify.pipeline.options import PipelineOptions
from dalify.registry import READER_PARAMETERS
from dalify.sources.sampler import Sampler, SamplerOptions

__all__ = ["Built", "build"]


@dataclass(frozen=True, slots=True)
class Built:
    """A pipeline that is ready to run.

    Attributes:
        graph: after all passes.
        report: what each pass did.
        plan: what the engine runs.
        engine: runs it.
    """

    graph: Graph
    report: Report
    plan: Plan
    engine: Engine


def build(graph: Graph, options: PipelineOptions, seed: int, name: str) -> Built:
    """Make a traced graph ready to run.

    Args:
        graph: as traced.
        options: of the pipeline.
        seed: of the pipeline, 64 bits.
        name: for the threads' names.

    Raises:
        DalifyError: the graph cannot run; with operator and the user's line.
    """
    seeds = node_seeds(graph, seed)  # before the passes: what they insert or remove must not change anybody's numbers
    graph, report = optimise(graph)
    nodes = graph.nodes()
    device_nodes = [node for node in nodes if node.output_device == "gpu"]
    torch_device = find_device(options.device_id, device_nodes[0]) if device_nodes else None
    by_number = {node.number: value for node, value in seeds.items()}
    indices: dict[Node, Any] = {}
    samplers: dict[Node, Sampler] = {}
    for node in nodes:
        if node.operator.is_reader:
            indices[node] = _index(node)
            samplers[node] = _sampler(node, len(indices[node]), by_number[node.number][0])
    random_nodes = {node: by_number[node.number] for node in nodes if node.operator.is_random}
    plan = make_plan(graph, random_nodes, indices)
    pool = BufferPool()
    externals = [
        ExternalFeed(node, slots, options.batch_size, pool, torch_device, _parallel_factory(options))
        for node, slots in plan.externals
    ]
    readers = {slot: ReaderFeed(step.node, samplers[step.node]) for slot, step in plan.readers.items()}
    engine = Engine(plan, options.num_threads, options.batch_size, externals, readers, torch_device, pool, name)
    return Built(graph, report, plan, engine)


def _parallel_factory(options: PipelineOptions) -> Any:
    def make(node: Node, batch_size: int) -> Any:
        raise AssertionError("dalify bug: parallel sources are not wired")

    return make


def node_seeds(graph: Graph, seed: int) -> dict[Node, tuple[int, int]]:
    """Return seed and stream number of every random node and reader.

    A stream goes by the operator's name and its occurrence (or by the name that the user gave), so that another operator
    that is added to the graph changes nobody's random numbers. A seed given to an operator is its own alone: two operators with the
    same seed draw the same numbers.
    """
    found: dict[Node, tuple[int, int]] = {}
    occurrences: Counter[str] = Counter()
    nodes = [node for node in graph.nodes() if node.operator.is_random or node.operator.is_reader]
    for node in sorted(nodes, key=lambda item: item.number):
        operator_name = node.operator.name
        label = node.name or f"{operator_name}#{occurrences[operator_name]}"
        occurrences[operator_name] += 1
        if node.seed is not None:
            found[node] = (node.seed, 0)
        elif node.operator.is_reader:
            found[node] = (seed ^ zlib.crc32(label.encode()), 0)
        else:
            found[node] = (seed, zlib.crc32(label.encode()))
    return found


def _index(node: Node) -> Any:
    operator = node.operator
    assert operator.index_function is not None, f"dalify bug: {operator.name} has no index"
    arguments = {name: value for name, value in rule_arguments(node).items() if name not in READER_PARAMETERS}
    try:
        index = operator.index_function(**arguments)
    except Exception as error:
        raise located(error, node, None, None) from error.__cause__
    if not len(index):
        raise ReaderError("there is nothing to read.", line=node.line, operator=operator.public_name)
    return index


def _sampler(node: Node, size: int, seed: int) -> Sampler:
    arguments = rule_arguments(node)
    names = (
        "shard_id",
        "num_shards",
        "random_shuffle",
        "initial_fill",
        "shuffle_after_epoch",
        "stick_to_shard",
        "pad_last_batch",
    )
    try:
        return Sampler(
            SamplerOptions(
                size,
                **{name: arguments[name] for name in names},
                seed=seed,
                shuffle_after_epoch_seed=arguments["shuffle_after_epoch_seed"] or 0,
            )
        )
    except DalifyError as error:
        error.locate(line=node.line, operator=node.operator.public_name)
        raise
