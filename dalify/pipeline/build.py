"""Build a traced graph: assign seeds, run the passes, create the engine."""

from __future__ import annotations

from dataclasses import dataclass

from dalify.base.limits import applied
from dalify.base.processors import UsingDevice
from dalify.executor.assembly import assemble
from dalify.executor.engine import Engine
from dalify.executor.options import PRECISIONS, EngineSetup
from dalify.graph import Graph, node_seeds
from dalify.passes import Report, optimize

__all__ = ["Built", "build"]


@dataclass(frozen=True, slots=True)
class Built:
    """A pipeline that is ready to run.

    Attributes:
        graph: after all passes.
        report: the changes of each pass.
        engine: the engine that runs the graph.
    """

    graph: Graph
    report: Report
    engine: Engine


def build(graph: Graph, outputs: int, setup: EngineSetup) -> Built:
    """Build a traced graph.

    Args:
        graph: as traced.
        outputs: number of outputs that the user receives; the others are tapped.
        setup: the options of the pipeline.

    Raises:
        DalifyError: the graph cannot run; the message names the operator and the user's line.
    """
    options = setup.options
    # For the error message if there is no device: a node that the user wrote, not a copy that the passes insert.
    gpu_node = next((node for node in graph.nodes() if node.output_device == "gpu"), None)
    # Before the passes, so that the nodes that they insert, replace or remove do not change random numbers.
    seeds = {node.number: value for node, value in node_seeds(graph, setup.seed).items()}
    with UsingDevice(options.device_id):
        graph, report = optimize(
            graph, PRECISIONS[options.precision], outputs, with_caches=True, on_error=options.on_error
        )
    with applied(options.limits), UsingDevice(options.device_id):  # readers build their indices here
        engine = assemble(graph, seeds, setup, gpu_node)
    return Built(graph, report, engine)
