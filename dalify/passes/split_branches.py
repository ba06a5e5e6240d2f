"""Inserts the splits of conditions.

Tracing records only the branch of a node. This pass splits every value from outside of a branch that is read inside it,
once per value and branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from dalify.base.errors import DivergentBranchesError
from dalify.base.source_line import SourceLine
from dalify.base.wording import counted
from dalify.graph import Branch, Edge, Graph, Node, is_within, new_edge, rewrite
from dalify.passes.report import Report
from dalify.registry import Role


def split_branches(graph: Graph, report: Report) -> Graph:
    """Return the graph in which every node reads only values of its own branch.

    Args:
        graph: any graph.
        report: a note is added for every condition.

    Raises:
        DivergentBranchesError: a value of a branch is used outside it without being merged.
    """
    if all(node.branch is None and not node.ends_branches for node in graph.nodes()):
        return graph
    splitter = _Splitter()
    changed = rewrite(graph, splitter.change)
    for edge in changed.outputs:
        if edge.node.branch is not None:
            raise _leak(edge.node, None)
    for line, count in splitter.lines.items():
        report.note("split_branches", f"the condition at {line} splits {counted(count, 'value')}")
    return changed


class _Splitter:
    def __init__(self) -> None:
        self._splits: dict[tuple[Edge, Branch], Edge] = {}
        self._branches: dict[tuple[Edge, bool, int, Branch | None], Branch] = {}
        self.lines: Counter[SourceLine | None] = Counter()

    def change(self, node: Node, _new_edge: Callable[[Edge], Edge]) -> Node:
        branch = self._canonical(node.branch)
        if node.ends_branches:
            predicate, *values = node.given_inputs
            predicate = self._reduced(predicate, branch, node)
            parts = [
                self._reduced(edge, self._side(predicate, side, branch, node.line), node)
                for edge, side in zip(values, node.sides, strict=True)
            ]
            return replace(node, inputs=(predicate, *parts), branch=branch)
        return node.with_edges(lambda edge: self._reduced(edge, branch, node), branch)

    def _canonical(self, branch: Branch | None) -> Branch | None:
        """Return one representative of all branches with the same condition and side."""
        if branch is None:
            return None
        parent = self._canonical(branch.parent)
        return self._side(
            self._reduced(branch.condition, parent, branch.condition.node), branch.taken, parent, branch.line
        )

    def _side(self, predicate: Edge, taken: bool | int, parent: Branch | None, line: SourceLine | None) -> Branch:
        # True, a side of a condition, and 1, a branch of a choice, are equal in Python.
        key = (predicate, isinstance(taken, bool), taken, parent)
        found = self._branches.get(key)
        if found is None:
            found = self._branches[key] = Branch(predicate, taken, parent, line or predicate.node.line)
        return found

    def _reduced(self, edge: Edge, branch: Branch | None, user: Node) -> Edge:
        """Return the edge reduced to the samples of a branch."""
        source_branch = edge.node.branch
        if source_branch is branch:
            return edge
        if branch is None or not is_within(branch, source_branch):
            raise _leak(edge.node, user)
        found = self._splits.get((edge, branch))
        if found is None:
            outer = self._reduced(edge, branch.parent, user)
            inputs = (outer, branch.condition)
            arguments = {"taken": branch.taken}
            found = new_edge(Role.SPLIT, inputs, arguments, edge.device, branch=branch, line=branch.line)
            self._splits[edge, branch] = found
            self.lines[branch.line] += 1
        return found


def _leak(node: Node, user: Node | None) -> DivergentBranchesError:
    where = f"\n  It is used at\n{user.line.quote('    ')}" if user is not None and user.line else ""
    return DivergentBranchesError(
        "a value from inside a branch of a condition is used outside of it, where it exists only for some "
        f"samples.{where}",
        line=node.line,
        operator=node.operator.public_name,
        hint="Assign it to a variable in both branches and use that variable afterwards.",
    )
