"""Write the pages of the operators from the catalogue: ``python -m docs.operators``.

`operators.md` is the list, `operators/` has a page for each. Pictures that are missing are drawn; figures of parity
come from `parity.json`.
"""

from __future__ import annotations

import inspect
import json
from enum import IntEnum
from pathlib import Path
from typing import Any

from dalify.registry import READER_PARAMETERS, Operator, Parameter, catalogue
from dalify.registry.legacy import LEGACY_NAMES
from dalify.registry.schema import pascal_case
from docs import pictures
from docs.docstrings import documentation_of
from docs.families import TASKS, families_of
from docs.parity import FIGURES, shown, why_no_gpu, why_no_other, why_not_beside_dali
from docs.shared import COMMON, READERS
from tests.operators.cases import CASES

__all__ = ["FOLDER", "PAGE", "default_text", "page", "page_of", "public_names", "type_text"]

PAGE = Path(__file__).with_suffix(".md")
FOLDER = Path(__file__).with_suffix("")

HEADING = """# Operators

Made by `python -m docs.operators`; a test fails where these pages and the package differ. Each name leads to a page
with all arguments, an example and how near the results come to DALI's; `help(fn.resize)` tells the same. `mixed`:
takes data of the CPU and gives them to the GPU. Arithmetic, comparisons and indexing of nodes, and `dalify.math`, are
operators too, written as in Python. [parity.md](parity.md) compares all operators with DALI and others.

## I want to …

| … | operator |
|---|---|
"""


def public_names() -> list[str]:
    """The operators that users may name."""
    return [name for name in catalogue.names() if not any(part.startswith("_") for part in name.split("."))]


def devices_of(operator: Operator) -> str:
    """The devices that users may name. Sources have no kernels: readers give data on the CPU, a user's on either."""
    mixed = ["mixed"] if operator.takes_mixed else []
    of_a_source = ["cpu"] if operator.is_reader else ["cpu", "gpu"]
    return ", ".join([*(sorted(operator.kernels) or of_a_source), *mixed])


def _code(text: str) -> str:
    return f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n\n", "<br>")


def page() -> str:
    """The list as it has to be."""
    names = public_names()
    text = HEADING
    for task, wanted in TASKS:
        there = [name for name in wanted if name in names]
        if there:
            text += f"| {task} | {', '.join(f'[`fn.{name}`](operators/{name}.md)' for name in there)} |\n"
    for family, members in families_of(names).items():
        text += f"\n## {family}\n\n| operator | devices | what it does |\n|---|---|---|\n"
        for name in members:
            operator = catalogue.find(name)
            summary = _cell(documentation_of(operator.doc).summary)
            text += f"| [`fn.{name}`](operators/{name}.md) | {devices_of(operator)} | {summary} |\n"
    text += "\n## What many operators take\n\n| argument | of | meaning |\n|---|---|---|\n"
    for title, table in (("all", COMMON), ("readers", READERS)):
        for name, meaning in table.items():
            of = "readers, decoders" if name == "on_error" else title
            text += f"| `{name}` | {of} | {_cell(meaning)} |\n"
    return text


def type_text(parameter: Parameter) -> str:
    """The type of an argument, as users write it."""
    text = parameter.annotation.replace(" or node", "")
    if issubclass(parameter.element, IntEnum):
        text = text.replace(parameter.element.__name__, f"types.{parameter.element.__name__}")
    return text if parameter.element is not object or "[" in text else "any"


def default_text(value: Any) -> str:
    """A default as users write it: ``types.INTERP_LINEAR``, ``[0.0]``."""
    if isinstance(value, IntEnum):
        return f"types.{value.name}"
    if isinstance(value, tuple):
        return f"[{', '.join(default_text(item) for item in value)}]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def own_parameters(operator: Operator) -> list[Parameter]:
    """The arguments that an operator does not share with others."""
    rule_takes = inspect.signature(operator.rule).parameters
    return [item for item in operator.parameters.values() if item.name in rule_takes]


def signature_of(operator: Operator) -> str:
    """How to call an operator, with all its own arguments."""
    parts = [f"*{item.name}" if item.is_variadic else item.name for item in operator.inputs]
    parts = [f"{part}=None" if item.is_optional else part for part, item in zip(parts, operator.inputs, strict=True)]
    own = own_parameters(operator)
    if parts and own:
        parts.append("/" if any(item.is_positional for item in own) else "*")
    parts += [item.name if item.is_required else f"{item.name}={default_text(item.default)}" for item in own]
    call = f"fn.{operator.name}({', '.join(parts)})"
    if len(call) <= 100:
        return call
    return f"fn.{operator.name}(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def page_of(name: str, figures: dict[str, Any]) -> str:
    """One operator's page as it has to be.

    Args:
        name: of the operator.
        figures: of parity, by operator.
    """
    operator = catalogue.find(name)
    told = documentation_of(operator.doc)
    head, _, tail = name.rpartition(".")
    spelled = f"ops.{head}.{pascal_case(tail)}" if head else f"ops.{pascal_case(tail)}"
    old = [f"`fn.{legacy}`" for legacy, modern in LEGACY_NAMES.items() if modern == name]
    text = f"# fn.{name}\n\n{told.text}\n\n"
    if (pictures.FOLDER / f"{name}.jpg").exists():
        text += f"![before and after](../pictures/{name}.jpg)\n\n"
    text += f"```python\n{signature_of(operator)}\n```\n\n"
    text += f"Devices: {devices_of(operator)}. As a class: `{spelled}`."
    text += f" Old names: {', '.join(old)}.\n" if old else "\n"
    if operator.inputs:
        text += "\n## Inputs\n\n| input | what it is |\n|---|---|\n"
        for item in operator.inputs:
            note = " (may be left out)" if item.is_optional else " (any number)" if item.is_variadic else ""
            text += f"| `{item.name}`{note} | {_cell(told.arguments.get(item.name, ''))} |\n"
    own = own_parameters(operator)
    if own:
        text += "\n## Arguments\n\n| argument | type | default | per sample | meaning |\n|---|---|---|---|---|\n"
        for item in own:
            default = "required" if item.is_required else f"`{_cell(default_text(item.default))}`"
            meaning = _cell(told.arguments.get(item.name, ""))
            per_sample = "yes" if item.accepts_node else ""
            text += f"| `{item.name}` | {_cell(type_text(item))} | {default} | {per_sample} | {meaning} |\n"
    text += "\nPer sample: a node may be given, with one value for each sample. "
    text += f"All operators also take {', '.join(map(_code, COMMON))}.\n"
    names = {item.name for item in own}
    also = [_code(item) for item in READER_PARAMETERS if item in operator.parameters and item not in names]
    if also:
        link = "[as other readers and decoders](../operators.md#what-many-operators-take)"
        text += f"\nIt takes, {link}: {', '.join(also)}.\n"
    text += f"\n## Returns\n\n{told.returns}\n"
    if told.raises:
        text += "\n## Raises\n\n" + "".join(f"- `{error}`: {when}\n" for error, when in told.raises)
    if told.example:
        text += f"\n## Example\n\n```python\n{told.example}\n```\n"
    return text + _parity_of(name, figures.get(name))


def _parity_of(name: str, found: dict[str, Any] | None) -> str:
    if found is None or name not in CASES:
        return ""
    text = "\n## Parity\n\nLargest differences, see [parity](../parity.md) for how to read them.\n\n"
    text += "| beside | difference |\n|---|---|\n"
    dali = f"{shown(found['dali'])}, over {found['dali']['variants']} variants" if "dali" in found else ""
    text += f"| DALI | {dali or why_not_beside_dali(name)} |\n"
    text += f"| CPU and GPU kernels | {shown(found.get('gpu')) or why_no_gpu(name)} |\n"
    other = f"{shown(found['other'])} ({found['other']['what']})" if "other" in found else why_no_other(name)
    text += f"| other means | {other} |\n"
    if found["promise"]:
        text += f"| what the tests promise beside DALI | {found['promise']} |\n"
    types = "any" if len(found["types"]) >= 12 else ", ".join(found["types"])
    return text + (f"\nElement types of the first input: {types}.\n" if types else "")


def main() -> None:
    """Write all pages, and remove those of operators that are gone."""
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    names = public_names()
    pictures.main([name for name in names if not (pictures.FOLDER / f"{name}.jpg").exists()])
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.md"):
        if path.stem not in names:
            path.unlink()
    for name in names:
        (FOLDER / f"{name}.md").write_text(page_of(name, figures), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
