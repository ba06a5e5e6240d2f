"""Methods of a pipeline that return sizes and sharding of its readers, bad samples and the validity mask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.errors import PipelineStateError, suggestion

if TYPE_CHECKING:
    from dalify.executor.engine import Engine
    from dalify.executor.recovery import BadSample

__all__ = ["Reading"]


class Reading:
    """Mixin of ``Pipeline`` with information about readers and samples."""

    if TYPE_CHECKING:  # defined by the classes that use the mixin

        def _engine(self) -> Engine: ...

    def epoch_size(self, name: str | None = None) -> int | dict[str, int]:
        """Return the number of samples of a reader, or of all named readers.

        With ``pad_last_batch`` it is a multiple of the number of shards, because all are padded to the same length.
        """
        meta = self.reader_meta(name)
        if name is not None:
            return meta["epoch_size_padded"]
        return {key: value["epoch_size_padded"] for key, value in meta.items()}

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Return sizes and sharding of a reader, or of all readers by name.

        Raises:
            PipelineStateError: there is no reader of that name.
        """
        found = {feed.node.label: feed.sampler.options.meta() for feed in self._engine().feeds.readers.values()}
        if name is None:
            return found
        if name not in found:
            raise PipelineStateError(
                f"the pipeline has no reader {name!r}.{suggestion(name, found)}",
                hint=f"Existing readers: {', '.join(found) or 'none'}. Name a reader with fn.readers.file(..., "
                "name='Reader').",
            )
        return found[name]

    def left_of_epochs(self, name: str) -> dict[int, int]:
        """Return the number of samples of all shards that are left of epochs begun with another number of shards.

        Args:
            name: name of the reader.
        """
        for feed in self._engine().feeds.readers.values():
            if feed.node.label == name:
                return feed.sampler.left()
        return {}

    def bad_samples(self, epoch: int | None = None) -> list[BadSample]:
        """Return the samples that could not be read or decoded, in the order of the batches that the user received.

        With ``on_error="skip"`` or ``"replace"``. At least the latest 25,000; ``bad_count`` counts all. The list of
        a resumed pipeline starts empty.

        Args:
            epoch: epoch of the reader, from 0; None for all since the pipeline was created.

        Example:
            >>> for bad in pipe.bad_samples():
            ...     print(bad)  # photos/cat/17.jpg: DecodeError: the JPEG data end too early. (fn.decoders.image …)
        """
        found = self._engine().recovery.bad_samples
        return [sample for sample in found if epoch is None or sample.epoch == epoch]

    @property
    def bad_count(self) -> int:
        """Number of samples that could not be read or decoded, including those that ``bad_samples`` omits."""
        return self._engine().recovery.bad_count

    @property
    def valid(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which samples of the last returned batch are real, bool ``[samples]``.

        False for padding (``pad_last_batch``) and for replacements of bad samples, so that metrics can ignore them.
        """
        return self._engine().valid
