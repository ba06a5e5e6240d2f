"""The rewriting itself: statements and expressions that graph values may meet become calls of `overloads`; all else stays as it is.

Every new node stands at the line and columns of what it replaces. Functions, lambdas and classes within the function are left alone: they are
rewritten when they are called, and never when they are only handed to somebody (``source=``, ``function=``).
"""

# ruff: noqa: N802, N815 -- gast calls its visitors by the names of the node classes

from __future__ import annotations

from typing import Any

from dalify.frontend.straighten import RESULT, straighten
from dalify.frontend.syntax import bound_names, expression, gast, own_nodes, statement, statements

__all__ = ["OPERAND", "OVERLOADS", "transformed"]

OVERLOADS = "dalify__"
# Marks the functions that hold the lazy operands of expressions, so that tracebacks can show them under the name of the user's function.
OPERAND = "_dalify_operand"
_LAZY_BREAKERS = (gast.NamedExpr, gast.Yield, gast.YieldFrom, gast.Await)


def transformed(definition: Any, class_name: str) -> Any:
    """Rewrite a ``def`` or ``lambda``.

    Args:
        definition: its tree, which is changed.
        class_name: innermost class around it; names ``__like_this`` belong to it.

    Returns:
        the changed definition.
    """
    if isinstance(definition, gast.Lambda):
        definition.body = _Transformer([definition.body], definition.args, class_name, False).visit(definition.body)
        return definition
    is_generator = any(isinstance(node, (gast.Yield, gast.YieldFrom)) for node in own_nodes(definition.body))
    body = straighten(definition.body, is_generator=is_generator)
    transformer = _Transformer(body, definition.args, class_name, is_generator)
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
        inner = [child for child in gast.iter_child_nodes(node) if isinstance(child, (gast.stmt, gast.ExceptHandler, gast.match_case))]
        found = _jump(inner, in_loop or is_loop)
        if found is not None:
            return found
    return None


class _Transformer(gast.NodeTransformer):
    def __init__(self, body: list[Any], arguments: Any, class_name: str, is_generator: bool) -> None:
        self.class_name = class_name.lstrip("_")
        self.is_generator = is_generator
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
                done += [statement(f"{OVERLOADS}.keep({self.mangled(name)!r})", node) for name in names]
            result = self.visit(node)
            done += result if isinstance(result, list) else [result]
        return done

    def generic_visit(self, node: Any) -> Any:
        """Rewrite children; lists of statements go through `block`."""
        for field, value in gast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], gast.stmt):
                setattr(node, field, self.block(value))
            elif isinstance(value, list):
                setattr(node, field, [self.visit(item) if isinstance(item, gast.AST) else item for item in value])
            elif isinstance(value, gast.AST):
                setattr(node, field, self.visit(value))
        return node

    def mangled(self, name: str) -> str:
        """Return a name as the compiler knows it."""
        private = self.class_name and name.startswith("__") and not name.endswith("__")
        return f"_{self.class_name}{name}" if private else name

    def lazy(self, node: Any) -> Any:
        """Wrap an expression in a function that evaluates it."""
        return expression(f"lambda {OPERAND}=None: VALUE", node, VALUE=node)

    def is_lazy(self, nodes: list[Any]) -> bool:
        """Tell whether expressions can be evaluated in functions of their own."""
        return not any(isinstance(node, _LAZY_BREAKERS) for node in own_nodes(nodes))

    def conditionals(self) -> str:
        return "(" + "".join(f"{name}, " for name in self.around) + ")"

    # Left alone: rewritten when called.

    def visit_FunctionDef(self, node: Any) -> Any:
        return node

    def visit_AsyncFunctionDef(self, node: Any) -> Any:
        return node

    def visit_ClassDef(self, node: Any) -> Any:
        return node

    def visit_Lambda(self, node: Any) -> Any:
        return node

    # Statements

    def visit_If(self, node: Any) -> Any:
        self.count += 1
        name = f"_dalify_if_{self.count}"
        first, second = bound_names(node.body), bound_names(node.orelse)
        names = sorted((first.keys() | second.keys()) - self.outer_names)
        variables = tuple((self.mangled(key), first.get(key, 0), second.get(key, 0)) for key in names)
        jump = _jump([*node.body, *node.orelse])
        test = self.visit(node.test)
        guard = self.guard or f"_dalify_guard_{self.count}"
        outer, self.guard = self.guard, guard
        self.around.append(name)
        body, orelse = self.block(node.body), self.block(node.orelse)
        self.around.pop()
        self.guard = outer
        targets = "".join(f"{key}, " for key in names)
        before = f"    if {name}.is_traced:\n        {targets} = {name}.values\n" if names else ""
        after = f"{targets} = {name}.values" if names else "pass"
        done = statements(
            f"{name} = {OVERLOADS}.conditional({guard}, TEST, {variables!r}, {jump!r})\n"
            f"if {name}.enters_if({OVERLOADS}.locals()):\n    BODY\n"
            f"if {name}.enters_else({OVERLOADS}.locals()):\n{before}    ORELSE\n"
            f"if {name}.is_merged({OVERLOADS}.locals()):\n    {after}\n",
            node.test,
            TEST=test,
            BODY=body,
            ORELSE=orelse or [statement("pass", node.test)],
        )
        if outer:
            return done
        return statements(f"with {OVERLOADS}.guard() as {guard}:\n    BODY", node.test, BODY=done)

    def visit_Try(self, node: Any) -> Any:
        # An error may end here, so it must not leave branches open: conditions within get a guard of their own.
        guard, self.guard = self.guard, ""
        self.generic_visit(node)
        self.guard = guard
        return node

    visit_TryStar = visit_With = visit_Try

    def visit_While(self, node: Any) -> Any:
        self.generic_visit(node)
        node.test = expression(f"{OVERLOADS}.plain(TEST, 'while')", node.test, TEST=node.test)
        return node

    def visit_For(self, node: Any) -> Any:
        self.generic_visit(node)
        node.iter = expression(f"{OVERLOADS}.plain(ITER, 'for')", node.iter, ITER=node.iter)
        return node

    def visit_Assert(self, node: Any) -> Any:
        self.generic_visit(node)
        node.test = expression(f"{OVERLOADS}.plain(TEST, 'assert')", node.test, TEST=node.test)
        return node

    def visit_Match(self, node: Any) -> Any:
        self.generic_visit(node)
        node.subject = expression(f"{OVERLOADS}.plain(SUBJECT, 'match')", node.subject, SUBJECT=node.subject)
        return node

    def visit_match_case(self, node: Any) -> Any:
        node.body = self.block(node.body)  # patterns look like expressions but are none
        if node.guard is not None:
            node.guard = expression(f"{OVERLOADS}.plain(TEST, 'case')", node.guard, TEST=self.visit(node.guard))
        return node

    def visit_Raise(self, node: Any) -> Any:
        self.generic_visit(node)
        if not self.around:
            return node
        return [statement(f"{OVERLOADS}.not_in({self.conditionals()}, 'raise')", node), node]

    def visit_AugAssign(self, node: Any) -> Any:
        target = node.target
        if isinstance(target, gast.Name):
            node.value = self.visit(node.value)
            check = statement(f"{OVERLOADS}.in_place(TARGET)", target, TARGET=expression(target.id, target))
            return [check, node]
        self.generic_visit(node)
        target.value.args.append(gast.copy_location(gast.Constant(True, None), target))
        return node

    def visit_Attribute(self, node: Any) -> Any:
        self.generic_visit(node)
        if not isinstance(node.ctx, gast.Load):
            node.value = expression(f"{OVERLOADS}.owner(OWNER, {self.mangled(node.attr)!r})", node.value, OWNER=node.value)
        return node

    def visit_Subscript(self, node: Any) -> Any:
        self.generic_visit(node)
        if not isinstance(node.ctx, gast.Load):
            node.value = expression(f"{OVERLOADS}.items(OWNER)", node.value, OWNER=node.value)
        return node

    # Expressions

    def visit_Name(self, node: Any) -> Any:
        if isinstance(node.ctx, gast.Load) and node.id in self.guarded and node.id != RESULT:
            return expression(f"{OVERLOADS}.value(NAME)", node, NAME=node)
        return node

    def visit_IfExp(self, node: Any) -> Any:
        is_lazy = self.is_lazy([node.body, node.orelse])
        self.generic_visit(node)
        if not is_lazy:
            node.test = expression(f"{OVERLOADS}.plain(TEST, 'walrus')", node.test, TEST=node.test)
            return node
        body, orelse = self.lazy(node.body), self.lazy(node.orelse)
        return expression(f"{OVERLOADS}.choose(TEST, BODY, ORELSE)", node, TEST=node.test, BODY=body, ORELSE=orelse)

    def visit_BoolOp(self, node: Any) -> Any:
        is_lazy = self.is_lazy(node.values[1:])
        self.generic_visit(node)
        if not is_lazy:
            *firsts, last = node.values
            node.values = [expression(f"{OVERLOADS}.plain(TEST, 'walrus')", part, TEST=part) for part in firsts] + [last]
            return node
        word = "and_" if isinstance(node.op, gast.And) else "or_"
        call = expression(f"{OVERLOADS}.{word}(FIRST)", node, FIRST=node.values[0])
        call.args += [self.lazy(value) for value in node.values[1:]]
        return call

    def visit_UnaryOp(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, gast.Not):
            return expression(f"{OVERLOADS}.not_(VALUE)", node, VALUE=node.operand)
        return node

    def visit_Compare(self, node: Any) -> Any:
        names = [type(operator).__name__ for operator in node.ops]
        is_lazy = self.is_lazy(node.comparators)
        self.generic_visit(node)
        if len(names) == 1:
            if names[0] not in ("In", "NotIn"):
                return node
            text = f"{OVERLOADS}.contains(ITEM, CONTAINER, {names[0]!r})"
            return expression(text, node, ITEM=node.left, CONTAINER=node.comparators[0])
        if not is_lazy:
            return node
        call = expression(f"{OVERLOADS}.compare(FIRST)", node, FIRST=node.left)
        for name, operand in zip(names, node.comparators, strict=True):
            call.args.append(expression(f"({name!r}, VALUE)", operand, VALUE=self.lazy(operand)))
        return call

    def visit_Call(self, node: Any) -> Any:
        is_super = isinstance(node.func, gast.Name) and node.func.id == "super" and not node.args
        self.generic_visit(node)
        if is_super and self.first_argument:
            # Without arguments it would look for them in the frame, which is a function of its own for lazy operands.
            node.args = [expression("__class__", node), expression(self.first_argument, node)]
        node.func = expression(f"{OVERLOADS}.call(FUNCTION)", node.func, FUNCTION=node.func)
        return node

    def visit_comprehension(self, node: Any) -> Any:
        self.generic_visit(node)
        node.iter = expression(f"{OVERLOADS}.plain(ITER, 'for')", node.iter, ITER=node.iter)
        node.ifs = [expression(f"{OVERLOADS}.plain(TEST, 'comprehension')", test, TEST=test) for test in node.ifs]
        return node

    def visit_Yield(self, node: Any) -> Any:
        self.generic_visit(node)
        if self.around:
            value = node.value if node.value is not None else gast.copy_location(gast.Constant(None, None), node)
            text = f"{OVERLOADS}.not_in({self.conditionals()}, 'yield', VALUE)"
            node.value = expression(text, node, VALUE=value)
        return node

    visit_YieldFrom = visit_Yield
