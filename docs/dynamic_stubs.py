"""Write the stubs of dynamic mode, ``dalify/experimental/dynamic/``: ``python -m docs.dynamic_stubs``.

Alone beside ``docs.stubs`` because readers are classes here, operators have other common arguments, and the module has
members of its own, which the stub takes from its imports.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from dalify.registry import Operator, catalogue
from dalify.registry.schema import pascal_case
from docs.operators import public_names
from docs.stubs import PACKAGE, arguments_of, function_stub, text_of, write

__all__ = ["ROOM", "files"]

ROOM = PACKAGE / "experimental" / "dynamic"
_MODULE = "dalify.experimental.dynamic"
_NOT_HERE = ("    name:", "    preserve:", "    bytes_per_sample_hint:", "    seed:", "    device:")

_HEADER = '''"""{what}. Made by `python -m docs.dynamic_stubs` from the operators' files, for editors."""

import builtins as _builtins
from collections.abc import Sequence as _Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dalify import types
from dalify.experimental.dynamic.batch import Batch as _Batch
from dalify.experimental.dynamic.devices import Device as _Device
from dalify.experimental.dynamic.dtypes import DType as _DynamicDType
from dalify.experimental.dynamic.reader import Reader as _Reader
from dalify.experimental.dynamic.rng import RNG as _RNG
from dalify.experimental.dynamic.tensor import Tensor as _Tensor

_T = TypeVar("_T")
_Many: TypeAlias = _T | _Sequence[_T] | _Sequence[_Sequence[_T]] | np.ndarray[Any, Any]
_Input: TypeAlias = Any
_Computed: TypeAlias = _Tensor | _Batch | np.ndarray[Any, Any] | np.generic
_DType: TypeAlias = _DynamicDType | types.DALIDataType | np.dtype[Any] | type[Any]
'''
_RANDOM = """
from dalify.experimental.dynamic.rng import RNG as RNG
from dalify.experimental.dynamic.rng import get_default_rng as get_default_rng
from dalify.experimental.dynamic.rng import set_seed as set_seed
"""
_WHERE = "device: str | _Device | None = None"


def _function(operator: Operator, name: str) -> str:
    """The function of an operator: what it gives goes by what it is given."""
    head, _, rest = function_stub(operator, name).partition(") -> ")
    lines = [line for line in head.splitlines() if not line.startswith(_NOT_HERE)]
    own = [f"    {_WHERE},"] if "device" not in operator.parameters else []
    own += ["    batch_size: int | None = None,"] if "batch_size" not in operator.parameters else []
    own += ["    rng: _RNG | None = None,"] if operator.is_random else []
    text = "\n".join([*lines, *own]).replace(" | DataNode", " | _Computed")
    text = text.replace(": bool", ": _builtins.bool")  # ndd.bool is an element type
    return f"{text}\n) -> Any:\n" + rest.partition(":\n")[2]


def _reader(operator: Operator, name: str) -> str:
    """The class of a reader."""
    _, named = arguments_of(operator)
    kept = [part for part in named if not f"    {part}".startswith(_NOT_HERE) or part.startswith("seed:")]
    parts = ["self", "max_batch_size: int | None = None", "name: str | None = None", _WHERE, "*"]
    parts += ["enable_checkpointing: bool = False", *(part.replace(" | DataNode", "") for part in kept)]
    listed = "".join(f"        {part},\n" for part in parts)
    return f"class {name}(_Reader):\n{text_of(operator, '    ')}\n    def __init__(\n{listed}    ) -> None: ...\n"


def _members() -> str:
    """What the module imports of its own files, imported again under the same names."""
    tree = ast.parse((ROOM / "__init__.py").read_text(encoding="utf-8"))
    imports = [
        f"from {node.module} import {alias.name} as {alias.asname or alias.name}\n"
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_MODULE)
        for alias in node.names
        if alias.name != "install_names"
    ]
    return "\n" + "".join(imports)


def files() -> dict[Path, str]:
    """All stubs, by their paths."""
    members: dict[str, list[str]] = defaultdict(list, {"": []})
    for name in public_names():
        space, _, own = name.rpartition(".")
        operator = catalogue.find(name)
        if operator.is_reader:
            members[space].append(_reader(operator, pascal_case(own)))
        elif name != "external_source" and operator.feed_function is None:
            members[space].append(_function(operator, own))
    for space in list(members):  # also folders of folders
        for depth in range(space.count(".") + 1):
            members[".".join(space.split(".")[:depth])] += []
    made: dict[Path, str] = {}
    for space in sorted(members):
        module = ".".join(part for part in (_MODULE, space) if part)
        inner = sorted(other.rpartition(".")[2] for other in members if other and other.rpartition(".")[0] == space)
        text = _HEADER.format(what=f"Operators as `{module.removeprefix('dalify.experimental.')}`")
        if inner:
            text += f"\nfrom {module} import " + ", ".join(f"{name} as {name}" for name in inner) + "\n"
        text += {"": _members(), "random": _RANDOM}.get(space, "")
        text += "".join(f"\n{member}" for member in members[space])
        made[ROOM.joinpath(*space.split("."), "__init__.pyi")] = text
    return made


def main() -> None:
    """Write all stubs."""
    write(files(), [ROOM])


if __name__ == "__main__":
    main()
