"""A kernel or ``prepare`` function with the constant arguments of a step."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dalify.registry import OperatorFunction
from dalify.registry.parameter_group import field_names

# Name, class, fields, and positions and names of the fields that are graph values.
_Group = tuple[str, Any, tuple[str, ...], list[tuple[int, str]]]


class StepFunction:
    """A function with arguments; groups of constant arguments are created once instead of for each chunk.

    Args:
        given: the function.
        static: arguments without a value per sample.
        varying: names of the per-sample arguments that are graph values. The others are constants, repeated for each
            sample.
    """

    __slots__ = ("_groups", "_last", "_static", "_varying", "function", "names")

    def __init__(self, given: OperatorFunction, static: Mapping[str, Any], varying: Collection[str]) -> None:
        self.function = given.inner
        self.names = frozenset(given.declared) - given.groups.keys()
        self._groups: list[_Group] = []
        for name, group in given.groups.items():
            fields = field_names(group)
            places = [(place, field) for place, field in enumerate(fields) if field in varying]
            self._groups.append((name, group, fields, places))
        self._static = static
        self._varying = [name for name in self.names if name in varying]
        # Number of samples; arguments by name; groups that are created for each chunk, with the values of their fields.
        self._last: tuple[int, dict[str, Any], list[tuple[_Group, list[Any]]]] = (0, {}, [])

    def named(self, arguments: Mapping[str, Any], count: int) -> dict[str, Any]:
        """Return the arguments of the function by name, in a new dictionary.

        Args:
            arguments: all per-sample arguments.
            count: number of samples.
        """
        known, shared, unfinished = self._last
        if known != count:
            values = {**self._static, **arguments}
            shared = {name: values[name] for name in self.names if name in values}
            unfinished = list[tuple[_Group, list[Any]]]()
            for item in self._groups:
                name, group, fields, places = item
                given = [values[field] for field in fields]
                if places:
                    unfinished.append((item, given))
                else:
                    shared[name] = group(*given)
            self._last = (count, shared, unfinished)
        named = dict(shared)
        for name in self._varying:
            named[name] = arguments[name]
        for (name, group, _, places), given in unfinished:
            own = given.copy()
            for place, field in places:
                own[place] = arguments[field]
            named[name] = group(*own)
        return named
