"""Structural operators: the executor implements them. Passes and executor ask for their role, never for their name."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Unpack

from dalify.registry.operator import Operator, OperatorOptions, declaration_of

__all__ = ["Role", "Structural", "structural"]


class Role(Enum):
    """The purpose of a structural operator in a graph."""

    LITERAL = "the same value for every sample"
    TRANSFER = "copies a batch between the CPU and the GPU"
    SPLIT = "selects the samples of a branch"
    MERGE = "merges the samples of the two sides of a condition"
    JOIN = "joins the samples of the branches of a choice"
    CACHE = "stores its inputs across epochs"


class Structural(Operator):
    """An operator that the executor computes with a step of its own.

    Attributes:
        role: what it is for.
    """

    def __init__(self, rule: Callable[..., Any], *, role: Role, **options: Unpack[OperatorOptions]) -> None:
        super().__init__(rule, **options)
        self.role = role


structural = declaration_of(Structural)
"""Declare a structural operator."""
