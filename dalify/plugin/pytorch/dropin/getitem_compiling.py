"""Compiles the ``__getitem__`` of a user's dataset without its operations on the image, see `image_getitem`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from copy import copy
from types import CodeType, FunctionType
from typing import Any

from dalify.plugin.pytorch.dropin.image_sizes import HEADER
from dalify.plugin.pytorch.dropin.image_symbols import PATH, SAMPLE, loaded, yielded
from dalify.plugin.pytorch.dropin.working_folder import FOLDER


def compiled_lookup(
    function: FunctionType,
    definition: ast.FunctionDef,
    statements: list[ast.stmt],
    names: list[str],
    *,
    yield_at: int | None,
    is_joint: bool,
) -> Callable[..., Any]:
    """Return a function of folder, inner lookup, header, dataset and index that returns the path and other values.

    If code of the user follows the transforms, it is a generator function, which yields before that code. If one
    transform gets the image and other values, it yields these values, and receives the transformed ones.

    Args:
        function: the method.
        definition: its syntax tree.
        statements: its statements without the operations on the image.
        names: the variables with the other values.
        yield_at: the statement before which the function yields, because code of the user follows; None for no code.
        is_joint: whether a transform gets other values.
    """
    code = function.__code__
    values = ast.Tuple(list(map(loaded, names)), ast.Load())
    result = ast.Return(ast.Tuple([loaded(PATH), values], ast.Load()))
    if yield_at is not None or is_joint:
        result = ast.Return(values)
    body = list(statements)
    if yield_at is not None:
        body.insert(yield_at, ast.Expr(yielded([])))
    changed = copy(definition)
    changed.body = [*body, result]
    changed.args = copy(changed.args)
    changed.args.args = [*map(ast.arg, (FOLDER, SAMPLE, HEADER)), *changed.args.args]
    module = ast.Module([changed], [])
    compiled = compile(ast.fix_missing_locations(module), code.co_filename, "exec", dont_inherit=True)
    found = next(constant for constant in compiled.co_consts if isinstance(constant, CodeType))
    return FunctionType(found, function.__globals__)
