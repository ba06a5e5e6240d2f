"""Structural operators: the executor implements them. Passes and executor know their role, not their name."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Unpack

from dalify.registry.operator import Operator, OperatorOptions, declaration_of


class Role(Enum):
    """The purposes of the operators that graphs and passes insert. The value is the name of the operator.

    Attributes:
        LITERAL: the same value for every sample.
        TRANSFER: copies a batch between the CPU and the GPU.
        SPLIT: selects the samples of a branch.
        MERGE: merges the samples of the two sides of a condition.
        JOIN: joins the samples of the branches of a choice.
        CACHE: stores its inputs across epochs.
        NARROW: stores images as 16-bit floats. It has kernels; the operators of all other roles are structural.
    """

    LITERAL = "_literal"
    TRANSFER = "_transfer"
    SPLIT = "_conditional.split"
    MERGE = "_conditional.merge"
    JOIN = "_conditional.join"
    CACHE = "cache"
    NARROW = "_narrow"


class Structural(Operator):
    """An operator that the executor computes with a step of its own.

    Attributes:
        role: the purpose of the operator, determined by its name.
    """

    def __init__(self, rule: Callable[..., Any], **options: Unpack[OperatorOptions]) -> None:
        super().__init__(rule, **options)
        self.role = Role(self.name)


structural = declaration_of(Structural)
"""Declare a structural operator."""
