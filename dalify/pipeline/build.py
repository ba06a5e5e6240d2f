"""From a traced graph to what runs it: seeds, passes, engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dalify.base.limits import applied
from dalify.executor.assembly import Resources, assemble, node_seeds
from dalify.executor.engine import Engine
from dalify.executor.remote import Elsewhere
from dalify.graph import Graph
from dalify.passes import Report, optimise
from dalify.pipeline.options import PRECISIONS, PipelineOptions

__all__ = ["Built", "build"]


@dataclass(frozen=True, slots=True)
class Built:
    """A pipeline that is ready to run.

    Attributes:
        graph: after all passes.
        report: what each pass did.
        engine: runs it.
    """

    graph: Graph
    report: Report
    engine: Engine


def build(
    graph: Graph,
    outputs: int,
    options: PipelineOptions,
    seed: int,
    name: str,
    state: dict[str, Any] | None = None,
    elsewhere: Elsewhere | None = None,
) -> Built:
    """Make a traced graph ready to run.

    Args:
        graph: as traced.
        outputs: how many of the outputs the user gets; the others are tapped.
        options: of the pipeline.
        seed: of the pipeline, 64 bits.
        name: for the threads' names.
        state: of an engine of the same graph, to continue from.
        elsewhere: computes batches in the place of ``options.processes``; None: nobody else does.

    Raises:
        DalifyError: the graph cannot run; with operator and the user's line.
    """
    # The node that the user wrote, for the message where there is no device: the passes insert copies that he never
    # saw.
    asked = next((node for node in graph.nodes() if node.output_device == "gpu"), None)
    # Before the passes: what they insert, replace or remove must not change anybody's random numbers.
    seeds = {node.number: value for node, value in node_seeds(graph, seed).items()}
    graph, report = optimise(graph, PRECISIONS[options.precision], outputs, with_caches=True)
    resources = Resources(
        batch_size=options.batch_size,
        num_threads=options.num_threads,
        device_id=options.device_id,
        num_workers=options.py_num_workers or 0,
        start_method=options.py_start_method,
        callback_pickler=options.py_callback_pickler,
        callback_timeout_s=options.callback_timeout_s,
        name=name,
        on_error=options.on_error,
        max_error_rate=options.max_error_rate,
        limits=options.limits,
        seed=seed,
        processes=options.processes,
        elsewhere=elsewhere,
        under_way=options.depth,
        measures=options.enable_memory_stats,
    )
    with applied(options.limits):  # readers make their indices here
        engine = assemble(graph, seeds, resources, asked, state)
    return Built(graph, report, engine)
