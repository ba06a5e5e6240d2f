"""Functions of ``ops`` that list operators, and DALI's registration functions.

Operators are found by name at first use, so registration has no effect on them.
"""

from __future__ import annotations

from typing import Any

from dalify.api.classes import make_class
from dalify.registry.schema import get_schema, registered

_registered: dict[str, set[str]] = {"cpu": set(), "gpu": set()}


def cpu_ops() -> set[str]:
    """Return the schema names of all operators that run on the CPU."""
    return _registered["cpu"] | set(registered("cpu"))


def gpu_ops() -> set[str]:
    """Return the schema names of all operators that run on the GPU."""
    return _registered["gpu"] | set(registered("gpu"))


def mixed_ops() -> set[str]:
    """Return the schema names of all operators with inputs on the CPU and outputs on the GPU."""
    return set(registered("mixed"))


def register_cpu_op(name: str) -> None:
    """Add a name to those that ``cpu_ops`` returns."""
    _registered["cpu"].add(name)


def register_gpu_op(name: str) -> None:
    """Add a name to those that ``gpu_ops`` returns."""
    _registered["gpu"].add(name)


def Reload() -> None:  # noqa: N802 -- DALI's name
    """Do nothing: operators are found at first use."""


def python_op_factory(
    name: str, schema_name: str, internal_schema_name: str | None = None, generated: bool = True
) -> type[Any]:
    """Return the class of an operator under another name.

    Args:
        name: name of the class.
        schema_name: schema name of the operator: ``Resize``, ``readers__File``.
        internal_schema_name: accepted but ignored.
        generated: accepted but ignored.

    Raises:
        UnknownOperatorError: there is no such operator.
    """
    return make_class(get_schema(schema_name).operator, f"ops.{name}")
