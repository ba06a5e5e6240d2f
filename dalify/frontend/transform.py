"""Replaces constructs that may get graph values by calls of `overloads`, in syntax trees.

Every new node has the line and columns of the node that it replaces. Nested functions, lambdas and classes are
rewritten when they are called, so functions that are only arguments (``source=``, ``function=``) are not.
"""

from __future__ import annotations

from typing import Any

from dalify.base.narrow import is_list
from dalify.frontend.remove_jumps import RESULT, remove_jumps
from dalify.frontend.syntax import (
    OVERLOADS,
    bound_names,
    gast,
    literal,
    located,
    name,
    overload,
    own_nodes,
    statement,
    statements,
)

# Name of the functions for lazy operands of expressions; tracebacks show the name of the user's function instead.
OPERAND = "_dalify_operand"
_HOLD_STATEMENTS = (gast.stmt, gast.ExceptHandler, gast.match_case)
# Statements with a value that must not be a graph value: the name in messages, and the field.
_PLAIN_VALUES: dict[Any, tuple[str, str]] = {
    gast.While: ("while", "test"),
    gast.For: ("for", "iter"),
    gast.Assert: ("assert", "test"),
    gast.Match: ("match", "subject"),
}
_LAZY_BREAKERS = (gast.NamedExpr, gast.Yield, gast.YieldFrom, gast.Await)


def transformed(definition: Any, class_name: str) -> Any:
    """Rewrite a ``def`` or ``lambda``.

    Args:
        definition: its tree, which is changed.
        class_name: innermost enclosing class, for names ``__like_this``.
    """
    if isinstance(definition, gast.Lambda):
        definition.body = _Transformer([definition.body], definition.args, class_name).visit(definition.body)
        return definition
    is_generator = any(isinstance(node, (gast.Yield, gast.YieldFrom)) for node in own_nodes(definition.body))
    body = remove_jumps(definition.body, is_generator=is_generator)
    transformer = _Transformer(body, definition.args, class_name)
    definition.body = transformer.block(body)
    return definition


def _jump(body: list[Any], in_loop: bool = False) -> tuple[str, int] | None:
    """Return the first ``break``, ``continue`` or ``return`` that leaves these statements, with its line."""
    for node in body:
        if isinstance(node, gast.Return):
            return ("return", node.lineno)
        if isinstance(node, (gast.Break, gast.Continue)) and not in_loop:
            return ("break" if isinstance(node, gast.Break) else "continue", node.lineno)
        if isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)):
            continue
        is_loop = isinstance(node, (gast.For, gast.While))
        inner = [child for child in gast.iter_child_nodes(node) if isinstance(child, _HOLD_STATEMENTS)]
        found = _jump(inner, in_loop or is_loop)
        if found is not None:
            return found
    return None


class _Transformer(gast.NodeTransformer):
    def __init__(self, body: list[Any], arguments: Any, class_name: str) -> None:
        self.class_name = class_name.lstrip("_")
        positional = [*arguments.posonlyargs, *arguments.args]
        self.first_argument = positional[0].id if positional else ""
        self.count = 0
        self.around: list[str] = []
        self.guard = ""
        nodes = list(own_nodes(body))
        declared = [node.names for node in nodes if isinstance(node, (gast.Global, gast.Nonlocal))]
        self.outer_names = {name for names in declared for name in names}
        conditional = [node for node in nodes if isinstance(node, gast.If)]
        self.guarded = set(bound_names(conditional)) - self.outer_names

    def block(self, body: list[Any]) -> list[Any]:
        """Rewrite a list of statements."""
        done: list[Any] = []
        for node in body:
            if self.outer_names and not isinstance(node, gast.If):
                names = sorted(self.outer_names & bound_names([node]).keys())
                done += [_as_statement(overload(node, "keep", self.mangled(outer))) for outer in names]
            result = self.visit(node)
            done += result if isinstance(result, list) else [result]
        return done

    def generic_visit(self, node: Any) -> Any:
        """Rewrite children; lists of statements go through `block`."""
        for field, value in gast.iter_fields(node):
            if is_list(value) and value and isinstance(value[0], gast.stmt):
                setattr(node, field, self.block(value))
            elif is_list(value):
                setattr(node, field, [self.visit(item) if isinstance(item, gast.AST) else item for item in value])
            elif isinstance(value, gast.AST):
                setattr(node, field, self.visit(value))
        return node

    def mangled(self, name: str) -> str:
        """Return a name after private name mangling."""
        private = self.class_name and name.startswith("__") and not name.endswith("__")
        return f"_{self.class_name}{name}" if private else name

    def lazy(self, node: Any) -> Any:
        """Wrap an expression in a function that evaluates it."""
        marker = located(gast.Name(OPERAND, gast.Param(), None, None), node)
        return located(gast.Lambda(gast.arguments([marker], [], None, [], [], None, [literal(None, node)]), node), node)

    def is_lazy(self, nodes: list[Any]) -> bool:
        """Return whether expressions can be evaluated in separate functions."""
        return not any(isinstance(node, _LAZY_BREAKERS) for node in own_nodes(nodes))

    def conditionals(self, location: Any) -> Any:
        """Return the tuple of the enclosing ``if`` states."""
        return located(gast.Tuple([name(state, location) for state in self.around], gast.Load()), location)

    # gast calls visitors by the names of the node classes.

    def visit_FunctionDef(self, node: Any) -> Any:
        return node  # rewritten when it is called

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef  # noqa: N815

    # Statements

    def visit_If(self, node: Any) -> Any:
        self.count += 1
        state = f"_dalify_if_{self.count}"
        first, second = bound_names(node.body), bound_names(node.orelse)
        names = sorted((first.keys() | second.keys()) - self.outer_names)
        variables = tuple((self.mangled(key), first.get(key, 0), second.get(key, 0)) for key in names)
        jump = _jump([*node.body, *node.orelse])
        test = self.visit(node.test)
        guard = self.guard or f"_dalify_guard_{self.count}"
        outer, self.guard = self.guard, guard
        self.around.append(state)
        body, orelse = self.block(node.body), self.block(node.orelse)
        self.around.pop()
        self.guard = outer
        targets = "".join(f"{key}, " for key in names)
        before = f"    if {state}.is_traced:\n        {targets} = {state}.values\n" if names else ""
        after = f"{targets} = {state}.values" if names else "pass"
        done = statements(
            f"{state} = {OVERLOADS}.conditional({guard}, TEST, {variables!r}, {jump!r})\n"
            f"if {state}.enters_if({OVERLOADS}.locals()):\n    BODY\n"
            f"if {state}.enters_else({OVERLOADS}.locals()):\n{before}    ORELSE\n"
            f"if {state}.is_merged({OVERLOADS}.locals()):\n    {after}\n",
            node.test,
            TEST=test,
            BODY=body,
            ORELSE=orelse or [statement("pass", node.test)],
        )
        if outer:
            return done
        return statements(f"with {OVERLOADS}.guard() as {guard}:\n    BODY", node.test, BODY=done)

    def visit_Try(self, node: Any) -> Any:
        # An exception may be caught here, so conditions in this block need a separate guard that leaves their branches.
        guard, self.guard = self.guard, ""
        self.generic_visit(node)
        self.guard = guard
        return node

    visit_TryStar = visit_With = visit_Try  # noqa: N815

    def visit_While(self, node: Any) -> Any:
        self.generic_visit(node)
        construct, field = _PLAIN_VALUES[type(node)]
        value = getattr(node, field)
        setattr(node, field, overload(value, "plain", value, construct))
        return node

    visit_For = visit_Assert = visit_Match = visit_While  # noqa: N815

    def visit_match_case(self, node: Any) -> Any:
        node.body = self.block(node.body)  # patterns have the nodes of expressions, but must not be changed
        if node.guard is not None:
            node.guard = overload(node.guard, "plain", self.visit(node.guard), "case")
        return node

    def visit_Raise(self, node: Any) -> Any:
        self.generic_visit(node)
        if not self.around:
            return node
        return [_as_statement(overload(node, "not_in", self.conditionals(node), "raise")), node]

    def visit_AugAssign(self, node: Any) -> Any:
        target = node.target
        if isinstance(target, gast.Name):
            node.value = self.visit(node.value)
            return [_as_statement(overload(target, "in_place", name(target.id, target))), node]
        self.generic_visit(node)
        target.value.args.append(literal(True, target))
        return node

    def visit_Attribute(self, node: Any) -> Any:
        self.generic_visit(node)
        if not isinstance(node.ctx, gast.Load):
            node.value = overload(node.value, "owner", node.value, self.mangled(node.attr))
        return node

    def visit_Subscript(self, node: Any) -> Any:
        self.generic_visit(node)
        if not isinstance(node.ctx, gast.Load):
            node.value = overload(node.value, "items", node.value)
        return node

    # Expressions

    def visit_Name(self, node: Any) -> Any:
        if isinstance(node.ctx, gast.Load) and node.id in self.guarded and node.id != RESULT:
            return overload(node, "value", node)
        return node

    def visit_IfExp(self, node: Any) -> Any:
        is_lazy = self.is_lazy([node.body, node.orelse])
        self.generic_visit(node)
        if not is_lazy:
            node.test = overload(node.test, "plain", node.test, "walrus")
            return node
        body, orelse = self.lazy(node.body), self.lazy(node.orelse)
        return overload(node, "choose", node.test, body, orelse)

    def visit_BoolOp(self, node: Any) -> Any:
        is_lazy = self.is_lazy(node.values[1:])
        self.generic_visit(node)
        if not is_lazy:
            *firsts, last = node.values
            node.values = [overload(part, "plain", part, "walrus") for part in firsts] + [last]
            return node
        word = "and_" if isinstance(node.op, gast.And) else "or_"
        return overload(node, word, node.values[0], *(self.lazy(value) for value in node.values[1:]))

    def visit_UnaryOp(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, gast.Not):
            return overload(node, "not_", node.operand)
        return node

    def visit_Compare(self, node: Any) -> Any:
        names = [type(operator).__name__ for operator in node.ops]
        is_lazy = self.is_lazy(node.comparators)
        self.generic_visit(node)
        if len(names) == 1:
            is_containment = names[0] in ("In", "NotIn")
            return overload(node, "contains", node.left, node.comparators[0], names[0]) if is_containment else node
        if not is_lazy:
            return node
        operands = [part for pair in zip(names, map(self.lazy, node.comparators), strict=True) for part in pair]
        return overload(node, "compare", node.left, *operands)

    def visit_Call(self, node: Any) -> Any:
        is_super = isinstance(node.func, gast.Name) and node.func.id == "super" and not node.args
        self.generic_visit(node)
        if is_super and self.first_argument:
            # super() without arguments does not work in the separate functions of lazy operands.
            node.args = [name("__class__", node), name(self.first_argument, node)]
        node.func = overload(node.func, "call", node.func)
        return node

    def visit_comprehension(self, node: Any) -> Any:
        self.generic_visit(node)
        node.iter = overload(node.iter, "plain", node.iter, "for")
        node.ifs = [overload(test, "plain", test, "comprehension") for test in node.ifs]
        return node

    def visit_Yield(self, node: Any) -> Any:
        self.generic_visit(node)
        if self.around:
            value = literal(None, node) if node.value is None else node.value
            node.value = overload(node, "not_in", self.conditionals(node), "yield", value)
        return node

    visit_YieldFrom = visit_Yield  # noqa: N815


def _as_statement(value: Any) -> Any:
    """Return an expression as a statement."""
    return located(gast.Expr(value), value)
