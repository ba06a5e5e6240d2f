"""A kernel or ``prepare`` function with the arguments that all chunks of a step share."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import Any

from dalify.registry import Kernel
from dalify.registry.parameter_group import field_names, packing

__all__ = ["StepFunction"]


class StepFunction:
    """Groups of constants are created once, not for each chunk, with everything that they compute from their fields.

    Args:
        kernel: the function.
        static: arguments without a value per sample.
        constants: names of the per-sample arguments that are constants: arrays that depend on the number of samples.
        varying: names of the per-sample arguments that are values of the graph.

    Attributes:
        function: the function. It takes groups of constants as objects, other groups as their fields.
        names: its keyword arguments, without groups of constants.
    """

    __slots__ = ("_constants", "_groups", "_last", "_static", "_varying", "function", "names")

    def __init__(
        self, kernel: Kernel, static: Mapping[str, Any], constants: Collection[str], varying: Collection[str]
    ) -> None:
        self._groups = {
            name: (group, field_names(group))
            for name, group in kernel.groups.items()
            if not {*varying}.intersection(field_names(group))
        }
        self.function = packing(
            kernel.inner, {name: group for name, group in kernel.groups.items() if name not in self._groups}
        )
        parameters = inspect.signature(self.function).parameters.values()
        declared = [item.name for item in parameters if item.kind is inspect.Parameter.KEYWORD_ONLY]
        self.names = frozenset(declared) - {*self._groups}
        self._static = {name: static[name] for name in self.names if name in static}
        self._constants = [name for name in self.names if name in constants]
        self._varying = [name for name in self.names if name in varying]
        self._last: tuple[int, dict[str, Any]] = (0, {})

    def named(self, static: Mapping[str, Any], arguments: Mapping[str, Any], count: int) -> dict[str, Any]:
        """Return keyword arguments in a new dictionary.

        Args:
            static: all arguments without a value per sample.
            arguments: all per-sample arguments.
            count: number of samples.
        """
        known, shared = self._last
        if known != count:
            shared = dict(self._static)
            for name in self._constants:
                shared[name] = arguments[name]
            for name, (group, fields) in self._groups.items():
                shared[name] = group(*[static[field] if field in static else arguments[field] for field in fields])
            self._last = (count, shared)
        named = dict(shared)
        for name in self._varying:
            named[name] = arguments[name]
        return named
