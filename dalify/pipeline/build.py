"""Builds a traced graph: assigns seeds, runs the passes, creates the engine."""

from __future__ import annotations

from dataclasses import dataclass

from dalify.base.limits import applied
from dalify.base.processors import using_device
from dalify.executor.assembly import assemble
from dalify.executor.engine import Engine
from dalify.executor.options import PRECISIONS, EngineSetup
from dalify.graph import Graph, node_seeds
from dalify.passes import Report, optimize


@dataclass(frozen=True, slots=True)
class Built:
    """A pipeline that is ready to run.

    Attributes:
        graph: the graph after all passes.
        report: the changes of each pass.
        engine: the engine that runs the graph.
    """

    graph: Graph
    report: Report
    engine: Engine


def build(graph: Graph, outputs: int, setup: EngineSetup) -> Built:
    """Build a traced graph.

    Args:
        graph: the traced graph.
        outputs: number of outputs that are returned to the user; further ones are tapped.
        setup: the options of the pipeline.

    Raises:
        DalifyError: the graph cannot run; the message names the operator and the user's line.
    """
    options = setup.options
    # For the error message if there is no device: a node of the user, before the passes insert copies.
    gpu_node = next((node for node in graph.nodes() if node.output_device == "gpu"), None)
    # Before the passes, so that random numbers do not depend on them.
    seeds = {node.number: value for node, value in node_seeds(graph, setup.seed).items()}
    with using_device(options.device_id):
        graph, report = optimize(
            graph, PRECISIONS[options.precision], outputs, with_caches=True, on_error=options.on_error
        )
    with applied(options.limits), using_device(options.device_id):  # readers build their indices here
        engine = assemble(graph, seeds, setup, gpu_node)
    return Built(graph, report, engine)
