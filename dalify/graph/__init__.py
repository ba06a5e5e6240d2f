"""The graph: frozen nodes, the `DataNode` of users, specs of edges, drawing and serialization."""

from dalify.graph.branch import current_branch, entered, is_within
from dalify.graph.constants import constant_array
from dalify.graph.datanode import (
    DataNode,
    apply,
    arithmetic,
    call,
    choose,
    constant,
    logical_not,
    merge,
    transfer,
)
from dalify.graph.evaluator import Evaluator, Immediate, current_evaluator, evaluating, recording
from dalify.graph.expression import ArithmeticMixin, Expression, new_axis
from dalify.graph.graph import Graph, node_seeds, rewrite, upstream, upstream_readers
from dalify.graph.node import Branch, Edge, JoinedCall, Node, new_edge, new_node
from dalify.graph.specs import edge_spec, node_specs, rule_arguments
from dalify.graph.subscript import index_entries
from dalify.graph.trace import called_as, is_promotable, make_node
from dalify.registry import FedSource, Reader, Role

__all__ = [
    "ArithmeticMixin",
    "Branch",
    "DataNode",
    "Edge",
    "Evaluator",
    "Expression",
    "FedSource",
    "Graph",
    "Immediate",
    "JoinedCall",
    "Node",
    "Reader",
    "Role",
    "apply",
    "arithmetic",
    "call",
    "called_as",
    "choose",
    "constant",
    "constant_array",
    "current_branch",
    "current_evaluator",
    "edge_spec",
    "entered",
    "evaluating",
    "index_entries",
    "is_promotable",
    "is_within",
    "logical_not",
    "make_node",
    "merge",
    "new_axis",
    "new_edge",
    "new_node",
    "node_seeds",
    "node_specs",
    "recording",
    "rewrite",
    "rule_arguments",
    "transfer",
    "upstream",
    "upstream_readers",
]
