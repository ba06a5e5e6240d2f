"""What operators are for in a graph. Passes and executor ask for the role of an operator, never for its name."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

__all__ = ["Role"]


class Role(Enum):
    """The role of an operator in a graph.

    All roles but the first three are structural: the executor implements them, with a step of their own.
    """

    KERNEL = "computes its outputs with kernels"
    READER = "reads the entries of an index"
    FED = "the program supplies its data, with a callback or ``feed_input``"
    LITERAL = "the same value for every sample"
    TRANSFER = "copies a batch between the CPU and the GPU"
    SPLIT = "selects the samples of a branch"
    MERGE = "merges the samples of the two sides of a condition"
    JOIN = "joins the samples of the branches of a choice"
    CACHE = "stores its inputs across epochs"

    @property
    def is_source(self) -> bool:
        """Whether such operators produce data."""
        return self in (Role.READER, Role.FED)

    @property
    def ends_branches(self) -> bool:
        """Whether such operators read values of several branches."""
        return self in (Role.MERGE, Role.JOIN)

    def sides(self, count: int) -> Sequence[bool | int]:
        """Return ``Branch.taken`` of each of the `count` values that such operators merge."""
        return range(count) if self is Role.JOIN else (True, False)

    @property
    def selecting_input(self) -> int | None:
        """Which input selects samples, and is on the CPU whatever the device; None without one."""
        return {Role.SPLIT: 1, Role.MERGE: 0, Role.JOIN: 0}.get(self)

    @property
    def needs_no_kernel(self) -> bool:
        """Whether the executor computes such operators on any device."""
        return self in (Role.LITERAL, Role.TRANSFER) or self.selecting_input is not None
