"""The graph: frozen nodes, the `DataNode` of users, specs of edges, drawing and serialization."""

from dalify.graph.branch import Branch, current_branch, entered, is_within
from dalify.graph.choice import choose
from dalify.graph.datanode import ArithmeticMixin, DataNode, Expression, new_axis
from dalify.graph.graph import Graph, rewrite
from dalify.graph.node import Edge, Node
from dalify.graph.specs import edge_spec, node_specs, rule_arguments
from dalify.graph.trace import apply, arithmetic, call, constant, is_promotable, logical_not, merge, recording, transfer
from dalify.registry import Role

__all__ = [
    "ArithmeticMixin",
    "Branch",
    "DataNode",
    "Edge",
    "Expression",
    "Graph",
    "Node",
    "Role",
    "apply",
    "arithmetic",
    "call",
    "choose",
    "constant",
    "current_branch",
    "edge_spec",
    "entered",
    "is_promotable",
    "is_within",
    "logical_not",
    "merge",
    "new_axis",
    "node_specs",
    "recording",
    "rewrite",
    "rule_arguments",
    "transfer",
]
