"""The inputs, arguments and random numbers of a step for one chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalify.data import Batch
from dalify.executor.frame import Frame

if TYPE_CHECKING:
    from dalify.kernels.random.philox import SampleDraws


@dataclass(slots=True)
class StepCall:
    """All or some samples of a chunk that a step with a kernel computes.

    Attributes:
        frame: frame of the chunk.
        inputs: inputs; None for absent ones.
        count: number of samples.
        origins: origins of the samples; None if unknown.
        arguments: all per-sample arguments by name; must not be modified.
        draws: random numbers; None for operators without random numbers.
    """

    frame: Frame
    inputs: list[Batch | None]
    count: int
    origins: Any
    arguments: dict[str, Any]
    draws: SampleDraws | None = None
