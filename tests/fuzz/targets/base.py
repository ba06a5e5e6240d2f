"""The interface of a target, and functions that targets share."""

from __future__ import annotations

import importlib.util
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tests.fuzz.inputs import Input
from tests.fuzz.outcomes import Outcome


class Target(ABC):
    """One target of fuzzing, in a separate process.

    Attributes:
        name: as users write it.
        packages: modules that have to be installed.
        seconds: time limit of an input.
    """

    name: str
    packages: ClassVar[tuple[str, ...]] = ()
    seconds: float = 10.0

    @property
    def why_not(self) -> str:
        """Return why the target cannot run here; "" where it can."""
        missing = [name for name in self.packages if importlib.util.find_spec(name) is None]
        return f"{', '.join(missing)} is not installed" if missing else ""

    @abstractmethod
    def prepare(self, folder: Path) -> list[Input]:
        """Compile everything, and return the valid inputs.

        Args:
            folder: empty, for files; also the current folder.
        """

    @abstractmethod
    def mutated(self, given: Input, other: Input, rng: random.Random) -> Input:
        """Return a changed input; ``other`` is for splices."""

    @abstractmethod
    def run(self, given: Input) -> Outcome:
        """Run one input; everything that dalify raises becomes an outcome."""

    def check(self) -> Outcome:
        """Run good data, which have to give what they gave at first."""
        return Outcome("ok")


def bytes_of(outputs: Sequence[Any]) -> list[list[np.ndarray]]:
    """Return copies of the outputs of a run: ``[output][sample]``."""
    return [[np.array(batch.at(index)) for index in range(len(batch))] for batch in outputs]


def same_outputs(ours: list[list[np.ndarray]], expected: list[list[np.ndarray]]) -> bool:
    """Return whether two results are bit-identical."""
    return len(ours) == len(expected) and all(
        len(one) == len(other)
        and all(
            x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
            for x, y in zip(one, other, strict=True)
        )
        for one, other in zip(ours, expected, strict=True)
    )
