"""Groups of arguments that several operators have: declared and documented once, received as one object.

A group is a dataclass. In the signature of an operator it stands for its fields::

    @operator(alphabetical=True)
    def crop(x: Spec, /, *, window: CropWindow, dtype: DALIDataType | None = None) -> Spec: ...

Users write the fields as ordinary arguments; rules, ``prepare`` functions and kernels that declare ``window`` receive a
``CropWindow``. Its fields hold what single arguments would hold: constants and VARIES in rules, arrays in kernels.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

from dalify.registry.parameters import NO_DEFAULT, Parameter, parameter_of

_SECTIONS = ("Args", "Attributes")


class Parameters:
    """Base class of groups. Subclasses are dataclasses whose ``Attributes`` section documents the arguments."""

    def named(self, *names: str) -> dict[str, Any]:
        """Return some of the arguments by name."""
        return {name: getattr(self, name) for name in names}


@functools.cache
def field_names(group: type[Parameters]) -> tuple[str, ...]:
    """Return the names of the arguments of a group, in order."""
    return tuple(item.name for item in dataclasses.fields(typing.cast(Any, group)))


def argument_names(*groups: type[Parameters]) -> tuple[str, ...]:
    """Return the names of the arguments of several groups, in order."""
    return tuple(name for group in groups for name in field_names(group))


def group_of(annotation: Any) -> type[Parameters] | None:
    """Return the group that an annotation names, or None."""
    return annotation if isinstance(annotation, type) and issubclass(annotation, Parameters) else None


def parameters_of_group(group: type[Parameters]) -> list[Parameter]:
    """Return the arguments of a group."""
    hints = typing.get_type_hints(group, include_extras=True)
    found: list[Parameter] = []
    for item in dataclasses.fields(typing.cast(Any, group)):
        default = NO_DEFAULT if item.default is dataclasses.MISSING else item.default
        if item.default_factory is not dataclasses.MISSING:
            default = item.default_factory()
        found.append(parameter_of(item.name, hints[item.name], default))
    return found


def pack(groups: Mapping[str, type[Parameters]], named: dict[str, Any]) -> dict[str, Any]:
    """Replace the fields of groups by one object for each group.

    Args:
        groups: groups by the name of their parameter.
        named: arguments by name; changed.
    """
    for name, group in groups.items():
        named[name] = group(**{field: named.pop(field) for field in field_names(group) if field in named})
    return named


def packing(function: Callable[..., Any], groups: Mapping[str, type[Parameters]]) -> Callable[..., Any]:
    """Return a function that takes the fields of groups instead of the groups; the function itself without groups.

    Args:
        function: its keyword-only parameters may be names of groups, and of single fields of them.
        groups: groups by name.
    """
    signature = inspect.signature(function)
    used = {name: groups[name] for name in signature.parameters if name in groups}
    if not used:
        return function

    fields = [name for group in used.values() for name in field_names(group)]
    single = [name for name in fields if name in signature.parameters]
    members = [(name, group, _getter(field_names(group))) for name, group in used.items()]
    packed_fields = frozenset(fields) - frozenset(single)

    @functools.wraps(function)
    def packed(*arrays: Any, **named: Any) -> Any:
        given = {name: value for name, value in named.items() if name not in packed_fields}
        for name, group, values in members:
            given[name] = group(*values(named))
        return function(*arrays, **given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    kept = [item for name, item in signature.parameters.items() if name not in used]
    flat = [*kept, *(inspect.Parameter(name, keyword) for name in fields if name not in single)]
    flat.sort(key=lambda item: item.kind)  # `**others` last
    packed.__signature__ = signature.replace(parameters=flat)  # pyright: ignore[reportAttributeAccessIssue]
    return packed


def _getter(names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Return a function that returns the values of keys of a dictionary."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda named: tuple(named[name] for name in names)


def merged_documentation(doc: str, names: Iterable[str], groups: Iterable[type[Parameters]]) -> str:
    """Return the docstring of an operator with the arguments of its groups.

    Args:
        doc: the docstring; its text on an argument of a group replaces the group's text.
        names: inputs and arguments, in order.
        groups: the groups.
    """
    texts: dict[str, str] = {}
    for group in groups:
        for base in reversed(group.__mro__[: group.__mro__.index(Parameters)]):
            texts |= _entries(inspect.cleandoc(base.__doc__ or ""))[1]
    (before, after), own = _entries(doc)
    texts |= own
    return before + "".join(texts[name] for name in names if name in texts) + after


def _entries(doc: str) -> tuple[tuple[str, str], dict[str, str]]:
    """Return the text before and after the entries of the arguments, and the entries by name, with line ends."""
    lines = doc.splitlines(keepends=True)
    first = next((i + 1 for i, line in enumerate(lines) if line.rstrip(":\n") in _SECTIONS), len(lines))
    last = next((i for i in range(first, len(lines)) if not lines[i].strip()), len(lines))
    entries: dict[str, str] = {}
    name = ""
    for line in lines[first:last]:
        begins = re.match(r" {4}\*?(\w+): ", line)
        name = begins[1] if begins else name
        entries[name] = entries.get(name, "") + line.rstrip("\n") + "\n"
    after = "".join(lines[last:])
    return ("".join(lines[:first]), after), entries
