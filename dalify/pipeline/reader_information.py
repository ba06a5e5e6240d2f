"""Sizes and sharding of the readers of an engine, bad samples and the validity mask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalify.base.errors import PipelineStateError, suggestion

if TYPE_CHECKING:
    from dalify.executor.engine import Engine
    from dalify.executor.recovery import BadSample

__all__ = ["ReaderInformation"]


class ReaderInformation:
    """Information about the readers of an engine; the methods of ``Pipeline`` describe the results.

    Args:
        engine: the engine.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def meta(self) -> dict[str, dict[str, Any]]:
        """Return sizes and sharding of all readers by name."""
        return {feed.node.label: feed.sampler.options.meta() for feed in self._engine.feeds.readers.values()}

    def meta_of(self, name: str) -> dict[str, Any]:
        """Return sizes and sharding of a reader.

        Raises:
            PipelineStateError: there is no reader of that name.
        """
        found = self.meta()
        if name not in found:
            raise PipelineStateError(
                f"the pipeline has no reader {name!r}.{suggestion(name, found)}",
                hint=f"Existing readers: {', '.join(found) or 'none'}. Name a reader with fn.readers.file(..., "
                "name='Reader').",
            )
        return found[name]

    def remaining_of_epochs(self, name: str) -> dict[int, int]:
        """Return the number of samples of all shards that are left of epochs begun with another number of shards."""
        for feed in self._engine.feeds.readers.values():
            if feed.node.label == name:
                return feed.sampler.left()
        return {}

    def bad_samples(self, epoch: int | None) -> list[BadSample]:
        """Return the recorded bad samples of an epoch; None: of all epochs."""
        return [sample for sample in self._engine.recovery.bad_samples if epoch is None or sample.epoch == epoch]
