"""Write the stubs ``dalify/fn/``, ``dalify/ops/`` and ``dalify/eager/``: ``python -m docs.stubs``.

Functions and classes are made from the catalogue when they are first named, so no editor would find them. The stubs
tell it their names, arguments and types. At run time Python takes ``fn.py``: a folder without ``__init__.py`` counts
for less than a module of its name.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from pathlib import Path

from dalify.data.dtypes import DALIDataType
from dalify.registry import Operator, Parameter, catalogue
from dalify.registry.legacy import LEGACY_NAMES
from dalify.registry.schema import pascal_case
from docs.docstrings import documentation_of
from docs.operators import default_text, public_names

__all__ = ["PACKAGE", "arguments_of", "files", "function_stub", "text_of", "write"]

PACKAGE = Path(__file__).parent.parent / "dalify"

_HEADER = '''"""{what}. Made by `python -m docs.stubs` from the operators' files, for editors and type checkers."""

from collections.abc import Callable as _Callable, Sequence as _Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from typing_extensions import deprecated

from dalify import types
from dalify.graph import DataNode

_T = TypeVar("_T")
_Many: TypeAlias = _T | _Sequence[_T] | _Sequence[_Sequence[_T]] | np.ndarray[Any, Any]
_Input: TypeAlias = DataNode | _Sequence[DataNode] | npt.ArrayLike
_DType: TypeAlias = types.DALIDataType | np.dtype[Any] | type[Any]
'''

# The members that are no operators.
_COMPOSE = '''
def Compose(op_list: _Sequence[_Callable[..., Any]]) -> _Callable[..., Any]:
    """Chain operators: the outputs of one are the inputs of the next."""
    ...
'''

_EAGER = """
from dalify.eager.generator import get_state as get_state
from dalify.eager.generator import seed as seed
from dalify.eager.generator import set_state as set_state
from dalify.eager.values import batch as batch
from dalify.eager.values import tensor as tensor
"""
_EAGER_HEADER = '''"""{what}. Made by `python -m docs.stubs` from the operators' files, for editors."""

from collections.abc import Sequence as _Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from typing_extensions import deprecated

from dalify import types
from dalify.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU

_T = TypeVar("_T")
_Many: TypeAlias = _T | _Sequence[_T] | _Sequence[_Sequence[_T]] | np.ndarray[Any, Any]
_Input: TypeAlias = Any
_Computed: TypeAlias = np.ndarray[Any, Any] | np.generic | TensorCPU | TensorGPU | TensorListCPU | TensorListGPU
_DType: TypeAlias = types.DALIDataType | np.dtype[Any] | type[Any]
'''

_COMMON = {"name": "str", "device": "str", "preserve": "bool", "bytes_per_sample_hint": "int", "seed": "int"}
_PLAIN = {int: "int", float: "float", bool: "bool", str: "str"}


def type_of(parameter: Parameter) -> str:
    """What may be given for an argument, as an annotation."""
    element = parameter.element
    if issubclass(element, DALIDataType):
        text = "_DType"
    elif issubclass(element, IntEnum):
        text = f"types.{element.__name__}"
    else:
        text = _PLAIN.get(element, "Any")
    if text == "Any":
        return text
    if parameter.is_list:
        text = f"_Many[{text}]"
    if parameter.accepts_node:
        text += " | DataNode"
    return text if parameter.is_required else f"{text} | None"


def _default(parameter: Parameter) -> str:
    if parameter.is_required:
        return ""
    is_plain = isinstance(parameter.default, (int, float, str)) or parameter.default is None
    return f" = {default_text(parameter.default)}" if is_plain else " = ..."


def arguments_of(operator: Operator) -> tuple[list[str], list[str]]:
    """Return the declarations of the arguments that may be given by position, and of the others."""
    positional, named = [], []
    for item in operator.parameters.values():
        (positional if item.is_positional else named).append(f"{item.name}: {type_of(item)}{_default(item)}")
    known = operator.parameters
    named += [f"{name}: {text} | None = None" for name, text in _COMMON.items() if name not in known]
    return positional, named


def _result(operator: Operator) -> str:
    """What a call gives: a node, several, or what depends on the arguments."""
    if isinstance(operator.outputs, int):
        nodes = ", ".join(["DataNode"] * operator.outputs)
        return nodes if operator.outputs == 1 else f"tuple[{nodes}]"
    return "Any"


def text_of(operator: Operator, indent: str) -> str:
    """The docstring of a stub: the first sentence, and the example."""
    told = documentation_of(operator.doc)
    summary = told.summary.replace("\\", "\\\\")
    lines = textwrap.wrap(f"{summary}.", 110 - len(indent))
    if told.example:
        lines += ["", *told.example.replace("\\", "\\\\").splitlines()]
    rows = [f"{indent}{line}".rstrip() for line in lines]
    return f'{indent}"""' + "\n".join(rows).lstrip() + f'\n{indent}"""\n'


def _declaration(head: str, parts: list[str], result: str, indent: str) -> str:
    return f"{indent}def {head}(\n" + "".join(f"{indent}    {part},\n" for part in parts) + f"{indent}) -> {result}:\n"


def function_stub(operator: Operator, name: str) -> str:
    """The function of an operator."""
    inputs = [
        f"*{item.name}: _Input" if item.is_variadic else f"{item.name}: _Input" + (" | None = None" * item.is_optional)
        for item in operator.inputs
    ]
    positional, named = arguments_of(operator)
    is_open = any(item.is_variadic for item in operator.inputs)
    before = [part for part in inputs if not part.startswith("*")]
    parts = [*before, *(["/"] if before else []), *positional, *(part for part in inputs if part.startswith("*"))]
    parts += [*([] if is_open else ["*"]), *named]
    return _declaration(name, parts, _result(operator), "") + text_of(operator, "    ") + "    ...\n"


def eager_stub(operator: Operator, name: str) -> str:
    """The function of an operator that computes at once: what it gives goes by what it is given."""
    text = function_stub(operator, name)
    head, mark, rest = text.partition(") -> ")
    parameters = head.replace(" | DataNode", " | _Computed")
    own = "" if "layout" in operator.parameters else "    layout: str | None = None,\n"
    return parameters + own + "    batch_size: int | None = None,\n" + mark + "Any:\n" + rest.partition(":\n")[2]


def class_stub(operator: Operator, name: str) -> str:
    """The class of an operator."""
    positional, named = arguments_of(operator)
    made = _declaration("__init__", ["self", *positional, "*", *named], "None", "    ")
    called = f"    def __call__(self, *inputs: _Input, **arguments: Any) -> {_result(operator)}: ...\n"
    return f"class {name}:\n" + text_of(operator, "    ") + f"\n{made}        ...\n\n{called}"


def _old(kind: str, old: str, modern: str, spell: Callable[[str], str]) -> str:
    head, _, tail = modern.rpartition(".")
    spelled = f"{kind}.{head}.{spell(tail)}" if head else f"{kind}.{spell(tail)}"
    name = spell(old.rpartition(".")[2])
    note = f'@deprecated("is now called {spelled}")\n'
    if kind != "ops":
        return f"{note}def {name}(*inputs: _Input, **arguments: Any) -> Any: ...\n"
    return (
        f"{note}class {name}:\n    def __init__(self, *values: Any, **arguments: Any) -> None: ...\n"
        "    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...\n"
    )


_KINDS = (("fn", str, function_stub), ("ops", pascal_case, class_stub), ("eager", str, eager_stub))


def files() -> dict[Path, str]:
    """All stubs, by their paths."""
    made: dict[Path, str] = {}
    public = public_names()
    for kind, spell, stub in _KINDS:
        members: dict[str, list[str]] = defaultdict(list)
        for name in public:
            space, _, own = name.rpartition(".")
            operator = catalogue.find(name)
            if kind == "eager" and (operator.is_reader or name == "external_source" or operator.feed_function):
                continue
            members[space].append(stub(operator, spell(own)))
        for old, modern in LEGACY_NAMES.items():
            if modern in public and not (kind == "eager" and catalogue.find(modern).is_reader):
                members[old.rpartition(".")[0]].append(_old(kind, old, modern, spell))
        spaces = {""} | {
            ".".join(space.split(".")[:depth]) for space in members for depth in range(1, space.count(".") + 2) if space
        }
        for space in sorted(spaces):
            inner = sorted(other.rpartition(".")[2] for other in spaces if other and other.rpartition(".")[0] == space)
            module = ".".join(part for part in ("dalify", kind, space) if part)
            text = (_EAGER_HEADER if kind == "eager" else _HEADER).format(
                what=f"Operators as `{module.removeprefix('dalify.')}`"
            )
            if inner:
                text += f"\nfrom {module} import " + ", ".join(f"{name} as {name}" for name in inner) + "\n"
            text += "".join(f"\n{member}" for member in members[space])
            if kind == "ops" and not space:
                text += _COMPOSE
            if kind == "eager" and not space:
                text += _EAGER
            made[PACKAGE.joinpath(kind, *space.split("."), "__init__.pyi")] = text
    return made


def write(made: Mapping[Path, str], rooms: Iterable[Path]) -> None:
    """Write the stubs of rooms, and remove those of namespaces that are gone."""
    for path in [path for room in rooms for path in room.rglob("*.pyi") if path not in made]:
        path.unlink()
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main() -> None:
    """Write all stubs."""
    write(files(), [PACKAGE / kind for kind, _, _ in _KINDS])


if __name__ == "__main__":
    main()
