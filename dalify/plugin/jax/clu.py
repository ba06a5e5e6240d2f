"""Iterators with ``peek``, for the training loops of Google's CLU (Common Loop Utils)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import numpy as np

from dalify.base.errors import PipelineStateError, ShapeError
from dalify.base.threads import Thread
from dalify.plugin.epoch_run import Outputs
from dalify.plugin.epochs import LastBatchPolicy
from dalify.plugin.frameworks import framework
from dalify.plugin.jax.arrays import as_jax
from dalify.plugin.jax.iterator import DALIGenericIterator, decorated

__all__ = ["DALIGenericPeekableIterator", "get_spec_for_array", "peekable_data_iterator"]

dataset_iterator = framework("clu.data.dataset_iterator", "jax.clu", "dalify[jax]")


def get_spec_for_array(jax_array: Any) -> Any:
    """Return CLU's ``ArraySpec`` of an array."""
    return dataset_iterator.ArraySpec(dtype=jax_array.dtype, shape=jax_array.shape)


class DALIGenericPeekableIterator(DALIGenericIterator):
    """A ``DALIGenericIterator`` of JAX with CLU's ``peek``. All batches have the shape and type of ``element_spec``.

    See ``DALIGenericIterator`` for the arguments; `last_batch_policy` is FILL or DROP.

    Raises:
        ShapeError: (during an epoch) a batch differs from the previous ones in shape or type.
    """

    _peeked: dict[str, Any] | None = None
    _masks: tuple[Any, ...] = ()  # of the last computed batch, one per pipeline
    _given: tuple[Any, ...] = ()  # of the last returned batch
    _before: dict[str, Any]  # the state before the peeked batch, if there is one
    _spec: dict[str, Any] | None = None

    def __next__(self) -> dict[str, Any]:
        """Return the next batch; after ``peek``, the batch that it returned.

        Raises:
            StopIteration: the epoch is over.
            ShapeError: the batch differs from the previous ones in shape or type.
        """
        with self._lock:
            batch, self._peeked = self._peeked, None
            if batch is None:
                batch = self._made()
            self._given = self._masks
            return batch

    def peek(self) -> dict[str, Any]:
        """Return the next batch without consuming it.

        Raises:
            StopIteration: the epoch is over.
            ShapeError: the batch differs from the previous ones in shape or type.
        """
        with self._lock:
            if self._peeked is None:
                self._before = super().state_dict()
                self._peeked = self._made()
            return self._peeked

    def peek_async(self) -> Future[dict[str, Any]]:
        """Return a future of the result of ``peek()``, computed in a separate thread."""
        future: Future[dict[str, Any]] = Future()

        def look() -> None:
            try:
                if future.set_running_or_notify_cancel():
                    future.set_result(self.peek())
            except BaseException as error:
                while not future.done():  # its consumer would wait forever
                    with suppress(MemoryError):
                        future.set_exception(error)

        Thread(look, "dalify-peek").start()
        return future

    def reset(self) -> None:
        """Start the next epoch; no effect before the first batch of an epoch."""
        with self._lock:
            if self._peeked is not None and self._run.delivered == 1:
                self._run.continues = False
                return
            self._peeked = None
            super().reset()

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the consumer; a batch that was only peeked is returned again."""
        with self._lock:
            return super().state_dict() if self._peeked is None else self._before

    def load_state_dict(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Continue at the state of an iterator, see ``GenericIterator``."""
        with self._lock:
            self._peeked = None
            super().load_state_dict(state)

    @property
    def element_spec(self) -> dict[str, Any]:
        """Shapes and types of a batch, by name, as CLU's ``ArraySpec``; this peeks at the next batch."""
        if self._spec is None:
            self.peek()
        assert self._spec is not None
        return self._spec

    @property
    def is_nonpadding(self) -> Any:
        """Bool mask of the samples of the last returned batch that are not padding or replacements.

        Shape and sharding are those of an output with one value per sample.

        Raises:
            PipelineStateError: no batch was returned yet.
        """
        if not self._given:
            raise PipelineStateError("is_nonpadding describes the last returned batch, but no batch was returned yet.")
        if self._join is None:
            return as_jax(self._given[0])
        return self._join("is_nonpadding", list(self._given))

    def _convert(self, outputs: Outputs, count: int, valid: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, Any]:
        self._masks = (*self._masks, valid)
        return super()._convert(outputs, count, valid)

    def _made(self) -> dict[str, Any]:
        self._masks = ()
        batch = super().__next__()
        spec = {name: get_spec_for_array(array) for name, array in batch.items()}
        if self._spec is None:
            self._spec = spec
        for name, expected in self._spec.items():
            if spec[name] != expected:
                raise ShapeError(
                    f"the output {name!r} is {spec[name]}, and was {expected} before.",
                    hint="Resize the samples to one size in the pipeline, or use plugin.jax.DALIGenericIterator.",
                )
        return batch


def peekable_data_iterator(
    pipeline_fn: Callable[..., Any] | None = None,
    output_map: Sequence[str] = (),
    size: int = -1,
    reader_name: str | None = None,
    auto_reset: str | bool | None = False,
    last_batch_padded: bool = False,
    last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
    prepare_first_batch: bool = True,
    sharding: Any = None,
    devices: Sequence[Any] | None = None,
    pmap_compatible: bool | None = None,
) -> Any:
    """Convert a pipeline function to a function that returns a ``DALIGenericPeekableIterator``.

    See ``data_iterator`` for the arguments; `last_batch_policy` is FILL or DROP.
    """
    return decorated(DALIGenericPeekableIterator, **locals())
