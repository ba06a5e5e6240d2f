"""The interface of processes that compute batches by number for the engine.

Order and random numbers are functions of the position, so batch k is the same in any process. The engine returns
batches in the order of their numbers, and runs sources, samplers, serial functions and the device. ``RemoteStages``
compute the stages that may run in other processes, for batches in any order. An implementation sends a ``Request`` to a
``BatchWorker`` and returns its ``Reply``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dalify.data import Batch
from dalify.executor.iteration import BadRecord, Iteration
from dalify.executor.plan import Plan


class RemoteStages(Protocol):
    """The stages that other processes compute."""

    @property
    def plan(self) -> Plan:
        """The part of the plan of a graph that consists of these stages."""
        ...

    @property
    def in_progress(self) -> int:
        """Number of batches that should be submitted at the same time."""
        ...

    def start(self) -> None:
        """Start the workers."""
        ...

    def submit(self, iteration: Iteration, done: Callable[[Iteration], None]) -> None:
        """Request the computation of a batch.

        Args:
            iteration: the batch. Values, positions of branches, bad samples and the error are filled in.
            done: called once, in any thread, when the batch is computed, has failed, or was dropped by ``discard``.
        """
        ...

    def discard(self) -> None:
        """Drop batches that are not being computed; they are no longer needed."""
        ...

    def renewed(self) -> Self:
        """Return an equal object for a forked process."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


class Request(NamedTuple):
    """The data needed to compute a batch.

    Attributes:
        number: number of the batch.
        size: number of samples.
        entries: entries chosen by the samplers, by slot of the reader's first output.
        readers: states of the samplers before the batch, in the order of the readers in the program.
        inputs: data of external sources, by slot.
        rows: see ``Iteration.rows``.
    """

    number: int
    size: int
    entries: Mapping[int, NDArray[Any]]
    readers: Sequence[Any]
    inputs: Mapping[int, Batch]
    rows: NDArray[Any] | None


class Reply(NamedTuple):
    """The result of a batch.

    Attributes:
        values: values by slot.
        positions: positions of the samples of each branch, by the index of the branch in ``branches_of(graph)``.
        bad: ``Iteration.bad``, with the index of the node in ``graph.nodes()`` instead of the node.
        substitutes: ``Iteration.substitutes``, with the same indices.
        sizes: see ``Meter.sizes``; empty without measurement.
        kept: for each cache, the number of the process and ``CacheStep.progress``.
    """

    values: Mapping[int, Batch | None]
    positions: Mapping[int, NDArray[np.int64]]
    bad: Sequence[BadRecord[int]]
    substitutes: Mapping[int, Sequence[int]]
    sizes: Mapping[int, tuple[int, int]]
    kept: Sequence[tuple[int, int, int, int]]
