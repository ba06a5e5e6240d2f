"""A kernel or ``prepare`` function with the arguments that all chunks of a step share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dalify.registry import OperatorFunction
from dalify.registry.parameter_group import field_names, packing

__all__ = ["StepFunction"]


class StepFunction:
    """Groups of constants are created once, not for each chunk, with everything that they compute from their fields.

    Args:
        given: the function.
        static: arguments without a value per sample.
        varying: names of the per-sample arguments that are values of the graph. The others are constants: arrays that
            depend on the number of samples.

    Attributes:
        function: the function. It takes groups of constants as objects, other groups as their fields.
        names: its keyword arguments, without groups of constants.
    """

    __slots__ = ("_groups", "_last", "_static", "_varying", "function", "names")

    def __init__(self, given: OperatorFunction, static: Mapping[str, Any], varying: Collection[str]) -> None:
        fields = {name: field_names(group) for name, group in given.groups.items()}
        self._groups = {
            name: (group, fields[name]) for name, group in given.groups.items() if not {*varying} & {*fields[name]}
        }
        varying_groups = {name: group for name, group in given.groups.items() if name not in self._groups}
        self.function = packing(given.inner, varying_groups)
        self.names = frozenset(given.declared) - {*fields}
        self.names |= {field for name in varying_groups for field in fields[name]}
        self._static = static
        self._varying = [name for name in self.names if name in varying]
        self._last: tuple[int, dict[str, Any]] = (0, {})

    def named(self, arguments: Mapping[str, Any], count: int) -> dict[str, Any]:
        """Return the arguments of the operator by name, in a new dictionary.

        Args:
            arguments: all per-sample arguments.
            count: number of samples.
        """
        known, shared = self._last
        if known != count:
            values = {**self._static, **arguments}
            shared = {name: values[name] for name in self.names if name in values}
            for name, (group, fields) in self._groups.items():
                shared[name] = group(*[values[field] for field in fields])
            self._last = (count, shared)
        named = dict(shared)
        for name in self._varying:
            named[name] = arguments[name]
        return named
