"""All feeds of a pipeline: scheduled together, with a common state.

If one feed fails, ends or is restored, the others must stay at the same batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dalify.base.errors import CheckpointError
from dalify.base.first_error import FirstError
from dalify.data import Batch
from dalify.executor.feeds import ExternalFeed, ReaderFeed

__all__ = ["Feeds"]


class Feeds:
    """The external sources and the readers of a pipeline.

    Args:
        externals: external sources, in the order of their calls.
        readers: readers by slot of their first output.
    """

    def __init__(self, externals: Sequence[ExternalFeed], readers: Mapping[int, ReaderFeed]) -> None:
        self.externals = externals
        self.readers = readers
        # In the order of the program: the meaning of a state must not depend on the passes.
        self._in_order = sorted([*externals, *readers.values()], key=lambda feed: feed.node.number)
        for place, feed in enumerate(self._in_order):
            feed.place = place

    def next_batches(self, states: Sequence[Any]) -> tuple[list[tuple[ExternalFeed, list[Batch]]], FirstError]:
        """Call every external source, even if one fails; return the batches and the first error.

        Args:
            states: the current ``state()``.

        Raises:
            StopIteration: a source has ended.
        """
        fed: list[tuple[ExternalFeed, list[Batch]]] = []
        failure = FirstError()
        for feed in self.externals:
            try:
                fed.append((feed, feed.next_batch()))
            except StopIteration:
                raise
            except Exception as error:
                failure.record(error)
            except BaseException:  # Ctrl-C: cancel all, so that no source is ahead of others
                for earlier, batches in fed:
                    earlier.take_back(batches, states[earlier.place])
                if not feed.has_unrepeatable_items and not feed.is_iterated_by_workers:
                    feed.restore(states[feed.place])
                raise
        return fed, failure

    def state(self) -> list[Any]:
        """Return the state of each feed; see ``Pipeline.state_dict``."""
        return [feed.state() for feed in self._in_order]

    def restore(self, states: Sequence[Any]) -> None:
        """Continue at a ``state()`` of feeds of the same graph.

        Raises:
            CheckpointError: one of them cannot continue there.
        """
        if len(states) != len(self._in_order):
            raise CheckpointError(
                f"the checkpoint is of {len(states)} readers and sources, the pipeline has {len(self._in_order)}."
            )
        for feed, state in zip(self._in_order, states, strict=True):
            feed.restore(state)

    def rewind(self, states: Sequence[Any]) -> None:
        """Set the readers back; data of external sources are lost."""
        for feed, state in zip(self._in_order, states, strict=True):
            if isinstance(feed, ReaderFeed):
                feed.restore(state)

    def reset_in_child(self, states: Sequence[Any]) -> None:
        """In a child that was forked while the feeds were called: restore their state before the call."""
        for feed, state in zip(self._in_order, states, strict=True):
            feed.reset_in_child(state)

    @property
    def can_restore(self) -> bool:
        """Whether ``restore`` works with the existing sources; otherwise all must be created again."""
        return not any(feed.is_iterated_by_workers for feed in self.externals)

    @property
    def shared_bytes(self) -> list[int]:
        """Memory of each slot that worker processes fill, of all sources."""
        return [size for feed in self.externals for size in feed.shared_bytes]

    @property
    def have_unrepeatable_items(self) -> bool:
        """Whether a source has returned items that it cannot repeat, for instance a generator."""
        return any(feed.has_unrepeatable_items for feed in self.externals)

    def start_epoch(self, epoch: int, is_next: bool) -> None:
        """Start an epoch of all readers, and the next one of all external sources, at its first sample.

        Args:
            epoch: number of the readers' epoch.
            is_next: whether external sources start the next epoch; otherwise they restart the current one.
        """
        for reader in self.readers.values():
            reader.sampler.start_epoch(epoch)
        for feed in self.externals:
            feed.restart(is_next)

    def release_waiting(self) -> None:
        """Release threads that wait for samples from other machines or processes."""
        for reader in self.readers.values():
            reader.release_waiting()

    def close(self) -> None:
        """End generators; release the resources of sources."""
        for feed in self._in_order:
            feed.close()
