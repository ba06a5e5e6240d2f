"""The pages of the operators, from the catalog: a list, and a page for each. ``docs.site`` writes them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from dalify.registry import READER_PARAMETERS, Operator, Parameter, catalog
from dalify.registry.legacy import LEGACY_NAMES
from dalify.registry.schema import pascal_case
from docs import pictures
from docs.docstrings import documentation_of
from docs.families import TASKS, families_of
from docs.parity import shown, why_no_gpu, why_no_other, why_not_compared_with_dali
from docs.shared import COMMON, READERS
from docs.signatures import default_text, public_names
from tests.operators.battery.cases import CASES

HEADING = """# Operators

Each name links to a page with all arguments, an example and the differences from DALI's results; `help(fn.resize)`
prints the arguments and the example. The device `mixed` has CPU inputs and GPU outputs. Arithmetic, comparisons and
indexing of graph values, and `dalify.math`, are operators with Python syntax. [Parity](parity.md) compares all
operators with DALI and other references.

## I want to …

| … | operator |
|---|---|
"""


def devices_of(operator: Operator) -> str:
    """Return the devices that users may specify."""
    return ", ".join([*operator.devices, *(["mixed"] if operator.takes_mixed else [])])


def _code(text: str) -> str:
    return f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n\n", "<br>")


def page() -> str:
    """Return the list."""
    names = public_names()
    text = HEADING
    for task, wanted in TASKS:
        there = [name for name in wanted if name in names]
        if there:
            text += f"| {task} | {', '.join(f'[`fn.{name}`](operators/{name}.md)' for name in there)} |\n"
    for family, members in families_of(names).items():
        text += f"\n## {family}\n\n| operator | devices | description |\n|---|---|---|\n"
        for name in members:
            operator = catalog.find(name)
            summary = _cell(documentation_of(operator.doc).summary)
            text += f"| [`fn.{name}`](operators/{name}.md) | {devices_of(operator)} | {summary} |\n"
    text += "\n## Common arguments\n\n| argument | operators | meaning |\n|---|---|---|\n"
    for title, table in (("all", COMMON), ("readers", READERS)):
        for name, meaning in table.items():
            of = "readers, decoders" if name == "on_error" else title
            text += f"| `{name}` | {of} | {_cell(meaning)} |\n"
    return text


def type_text(parameter: Parameter) -> str:
    """Return the type of an argument, as users write it."""
    text = parameter.annotation.replace(" or node", "")
    if issubclass(parameter.element, IntEnum):
        text = text.replace(parameter.element.__name__, f"types.{parameter.element.__name__}")
    return text if parameter.element is not object or "[" in text else "any"


def own_parameters(operator: Operator) -> list[Parameter]:
    """Return the arguments that are not common arguments."""
    return [item for item in operator.parameters.values() if item.name in operator.own_names]


def signature_of(operator: Operator) -> str:
    """Return the call of an operator with all its own arguments."""
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
    """Return the page of one operator.

    Args:
        name: name of the operator.
        figures: parity figures by operator.
    """
    operator = catalog.find(name)
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
        text += "\n## Inputs\n\n| input | meaning |\n|---|---|\n"
        for item in operator.inputs:
            note = " (optional)" if item.is_optional else " (any number)" if item.is_variadic else ""
            text += f"| `{item.name}`{note} | {_cell(told.arguments.get(item.name, ''))} |\n"
    own = own_parameters(operator)
    if own:
        text += "\n## Arguments\n\n| argument | type | default | per sample | meaning |\n|---|---|---|---|---|\n"
        for item in own:
            default = "required" if item.is_required else f"`{_cell(default_text(item.default))}`"
            meaning = _cell(told.arguments.get(item.name, ""))
            per_sample = "yes" if item.accepts_node else ""
            text += f"| `{item.name}` | {_cell(type_text(item))} | {default} | {per_sample} | {meaning} |\n"
        text += '\nAn argument with "yes" under "per sample" can be a graph value with one value per sample.\n'
    text += f"\nAll operators also accept {', '.join(map(_code, COMMON))}.\n"
    names = {item.name for item in own}
    also = [_code(item) for item in READER_PARAMETERS if item in operator.parameters and item not in names]
    if also:
        link = "[common to readers and decoders](../operators.md#common-arguments)"
        text += f"\nThis operator also accepts arguments {link}: {', '.join(also)}.\n"
    text += f"\n## Returns\n\n{told.returns}\n"
    if told.raises:
        text += "\n## Raises\n\n" + "".join(f"- `{error}`: {when}\n" for error, when in told.raises)
    if told.example:
        text += f"\n## Example\n\n```python\n{told.example}\n```\n"
    return text + _parity_of(name, figures.get(name))


def _parity_of(name: str, found: dict[str, Any] | None) -> str:
    if found is None or name not in CASES:
        return ""
    text = "\n## Parity\n\nLargest differences; [parity](../parity.md) explains the figures.\n\n"
    text += "| compared with | difference |\n|---|---|\n"
    dali = f"{shown(found['dali'])}, over {found['dali']['variants']} variants" if "dali" in found else ""
    text += f"| DALI | {dali or why_not_compared_with_dali(name)} |\n"
    text += f"| CPU and GPU kernels | {shown(found.get('gpu')) or why_no_gpu(name)} |\n"
    other = f"{shown(found['other'])} ({found['other']['what']})" if "other" in found else why_no_other(name)
    text += f"| other reference | {other} |\n"
    if found["promise"]:
        text += f"| tolerance of the tests against DALI | {found['promise']} |\n"
    types = "any" if len(found["types"]) >= 12 else ", ".join(found["types"])
    return text + (f"\nElement types of the first input: {types}.\n" if types else "")
