"""Batches by number, wherever they are computed.

Order and random numbers are functions of position, so batch k is the same in any process. Two interfaces say so: a
``BatchSource`` is what a pipeline runs: batches in the order of their numbers, and a state of a few integers. The
engine is the one that there is; its sources, samplers, serial functions and the device stay with it. What may run
anywhere it leaves to ``RemoteStages`` where it has some: they get a batch that was asked for, in any order, and give
it back with the values of their stages. Worker processes are one kind of them; another only has to bring a ``Request``
to a ``BatchWorker`` and its ``Reply`` back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dalify.data import Batch
from dalify.executor.iteration import Iteration

__all__ = ["BatchSource", "RemoteStages", "Reply", "Request", "request_of"]


class BatchSource(Protocol):
    """Batches in the order of their numbers."""

    @property
    def scheduled(self) -> int:
        """Number of batches that were asked for and not collected."""
        ...

    def schedule(self) -> None:
        """Ask for the batch of the next number; raises StopIteration where a source is at its end."""
        ...

    def collect(self) -> tuple[Batch, ...]:
        """Wait for the oldest batch that was asked for, and return its outputs or raise its error."""
        ...

    def discard(self) -> None:
        """Take back what was asked for."""
        ...

    def state(self) -> dict[str, Any]:
        """Return where the consumer stands, as plain data."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continue where a source of the same graph stood, of whatever kind it was."""
        ...

    def start_epoch(self, epoch: int, *, is_next: bool = True) -> None:
        """Begin an epoch at its first sample."""
        ...

    def close(self, *, wait: bool = True) -> None:
        """End threads and processes."""
        ...


class RemoteStages(Protocol):
    """The stages of a plan that are computed elsewhere."""

    def start(self) -> None:
        """Start what computes."""
        ...

    def submit(self, iteration: Iteration, done: Callable[[Iteration], None]) -> None:
        """Have a batch computed.

        Args:
            iteration: it. Values, positions of branches, bad samples and the error are filled in.
            done: called once, in any thread: when it is computed, given up after ``discard``, or failed.
        """
        ...

    def discard(self) -> None:
        """Forget what nobody has begun to compute: these batches are not wanted any more."""
        ...

    def again(self) -> Self:
        """Return the same for a process that was forked from this one."""
        ...

    def close(self) -> None:
        """End what computes."""
        ...


class Request(NamedTuple):
    """What must be known of a batch to compute it.

    Attributes:
        number: of the batch.
        size: number of samples.
        entries: what the samplers chose, by slot of the reader's first output.
        readers: states of the samplers before the batch, in the order in which the readers were written.
        inputs: what external sources gave, by slot.
    """

    number: int
    size: int
    entries: Mapping[int, NDArray[Any]]
    readers: Sequence[Any]
    inputs: Mapping[int, Batch]


class Reply(NamedTuple):
    """What became of a batch.

    Attributes:
        values: by slot.
        positions: of the samples of each branch, by the branch's place in ``branches_of(graph)``.
        bad: ``Iteration.bad``, with the place of the node in ``graph.nodes()`` for the node.
        stand_ins: ``Iteration.stand_ins``, likewise.
        sizes: see ``Meter.sizes``; empty where nobody measures.
        kept: of each cache, the number of the process and ``CacheStep.progress``.
    """

    values: Mapping[int, Batch | None]
    positions: Mapping[int, NDArray[np.int64]]
    bad: Sequence[tuple[Any, ...]]
    stand_ins: Mapping[int, Sequence[int]]
    sizes: Mapping[int, tuple[int, int]]
    kept: Sequence[tuple[int, int, int, int]]


def request_of(iteration: Iteration, readers: Sequence[int], inputs: Sequence[int]) -> Request:
    """Return what has to be sent of a batch.

    Args:
        iteration: the batch.
        readers: places of the readers among the sources.
        inputs: slots of external sources.
    """
    sources = iteration.before["sources"]
    given = {slot: batch for slot in inputs if (batch := iteration.values[slot]) is not None}
    return Request(iteration.number, iteration.size, iteration.entries, [sources[place] for place in readers], given)
