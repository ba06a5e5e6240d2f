"""The type of ``ops.Resize(size=224).spec``: the arguments and connections of one use of an operator."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple


class _Value(NamedTuple):
    name: str
    device: str
    ndim: int | None = None
    dtype: Any = None
    layout: str | None = None


class OpSpec:
    """Arguments, inputs and outputs of an operator, under the method names of DALI's class.

    Args:
        name: name of the schema.
        arguments: the specified arguments.
    """

    def __init__(self, name: str, arguments: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.arguments: dict[str, Any] = dict(arguments or {})
        self._argument_inputs: dict[str, _Value] = {}
        self._inputs: list[_Value] = []
        self._outputs: list[_Value] = []

    # Method names are DALI's.
    # ruff: noqa: N802

    def AddArg(self, name: str, value: Any) -> OpSpec:
        """Set an argument; return self."""
        self.arguments[name] = value
        return self

    def AddArgEmptyList(self, name: str, dtype: Any) -> OpSpec:
        """Set an argument to an empty list; return self."""
        return self.AddArg(name, [])

    def AddArgumentInput(
        self, arg_name: str, inp_name: str, ndim: int | None = None, dtype: Any = None, layout: str | None = None
    ) -> OpSpec:
        """Connect an argument to a graph value; return self."""
        self._argument_inputs[arg_name] = _Value(inp_name, "cpu", ndim, dtype, layout)
        return self

    def AddInput(
        self, name: str, device: str, ndim: int | None = None, dtype: Any = None, layout: str | None = None
    ) -> OpSpec:
        """Add an input; return self."""
        self._inputs.append(_Value(name, device, ndim, dtype, layout))
        return self

    def AddOutput(self, name: str, device: str) -> OpSpec:
        """Add an output; return self."""
        self._outputs.append(_Value(name, device))
        return self

    def NumInput(self) -> int:
        """Return the number of inputs, including argument inputs."""
        return len(self._inputs) + len(self._argument_inputs)

    def NumRegularInput(self) -> int:
        """Return the number of positional inputs."""
        return len(self._inputs)

    def NumOutput(self) -> int:
        """Return the number of outputs."""
        return len(self._outputs)

    def InputName(self, idx: int) -> str:
        """Return the name of an input."""
        return self.InputDesc(idx)[0]

    def InputDevice(self, idx: int) -> str:
        """Return the device of an input."""
        return self.InputDesc(idx)[1]

    def InputDesc(self, idx: int) -> tuple[str, str, int | None, Any, str | None]:
        """Return name, device, ndim, dtype and layout of an input; None for unknown values."""
        return [*self._inputs, *self._argument_inputs.values()][idx]

    def OutputName(self, idx: int) -> str:
        """Return the name of an output."""
        return self._outputs[idx].name

    def OutputDevice(self, idx: int) -> str:
        """Return the device of an output."""
        return self._outputs[idx].device

    def OutputDesc(self, idx: int) -> tuple[str, str, int | None, Any, str | None]:
        """Return name, device, ndim, dtype and layout of an output; None for unknown values."""
        return self._outputs[idx]

    def RenameInput(self, idx: int, name: str) -> None:
        """Rename an input."""
        self._inputs[idx] = self._inputs[idx]._replace(name=name)

    def RenameOutput(self, idx: int, name: str) -> None:
        """Rename an output."""
        self._outputs[idx] = self._outputs[idx]._replace(name=name)

    def copy(self) -> OpSpec:
        """Return an independent copy."""
        return copy.deepcopy(self)

    def __str__(self) -> str:
        """Return inputs, outputs and arguments, one per line."""
        lines = [f"OpSpec for {self.name}:", "  Inputs:"]
        lines += [f"    {item.name} {item.device}" for item in self._inputs]
        lines += ["  Outputs:", *(f"    {item.name} {item.device}" for item in self._outputs), "  Arguments:"]
        lines += [f"    {name}: {value}" for name, value in self.arguments.items()]
        return "\n".join(lines)
