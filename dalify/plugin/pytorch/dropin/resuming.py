"""Saves the position in an epoch of a loader, and resumes it, possibly in another process."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import torch.utils.data
from torch.utils.data.dataloader import _DatasetKind

from dalify.base.errors import CheckpointError
from dalify.plugin.pytorch.dropin.iterators import ThreadIterator


class _Counted:
    """An iterator over the indices of the batches of an epoch.

    Attributes:
        taken: number of batches for which indices were taken, including batches that failed.
    """

    def __init__(self, indices: Iterator[Any]) -> None:
        self._indices = indices
        self.taken = 0

    def __next__(self) -> Any:
        indices = next(self._indices)
        self.taken += 1
        return indices


def _requested_batches(iterator: Any) -> int:
    """Return the number of batches that were returned or failed; for iterable datasets, only the returned ones."""
    if isinstance(iterator._sampler_iter, _Counted):
        return iterator._sampler_iter.taken
    if iterator._dataset_kind != _DatasetKind.Map:
        return iterator._num_yielded
    return iterator._received if isinstance(iterator, ThreadIterator) else iterator._rcvd_idx


class Resumable:
    """Mixin with `state_dict` and `load_state_dict`, like torchdata's StatefulDataLoader."""

    _pass: tuple[weakref.ref[Any], list[torch.Tensor], bool] | None = None
    _resume_from: dict[str, Any] | None = None

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the current epoch: the number of returned batches, and the state of the order.

        The state is for ``torch.save`` or a checkpoint of a framework. Without workers, augmentations draw from torch's
        default generator; the caller must then also save and restore its state.
        """
        iterator = None if self._pass is None else self._pass[0]()
        batches = 0 if iterator is None else _requested_batches(iterator)
        if iterator is None or self._is_finished(batches):
            return {"batches": None, "generators": []}
        assert self._pass is not None
        return {"batches": batches, "generators": self._pass[1], "continues": self._pass[2]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue the epoch of a `state_dict`: the next iterator returns its remaining batches.

        With workers, the returned batches are computed again and discarded, with their errors, to restore the random
        numbers of the workers; without workers, they are skipped. Persistent workers keep their random numbers from
        epoch to epoch: after the first epoch, only the order is restored, not the numbers of augmentations.

        Args:
            state: of a loader with the same arguments. Unknown entries are ignored.

        Raises:
            CheckpointError: the state is not that of a loader, or that of a loader with other samplers.
        """
        if not isinstance(state, Mapping) or not {"batches", "generators"} <= state.keys():
            raise CheckpointError("not a state of a DataLoader.", hint="Pass the result of loader.state_dict().")
        if state["batches"] is not None and len(state["generators"]) != len(self._generators()):
            raise CheckpointError(
                f"the state belongs to a loader with {len(state['generators'])} random number generators, but this one "
                f"has {len(self._generators())}.",
                hint="Create the loader with the same sampler and generator.",
            )
        self._resume_from = dict(state)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("_pass", None)  # iterators cannot be pickled
        return state

    def __iter__(self) -> Any:
        state, self._resume_from = self._resume_from, None
        generators = self._generators()
        if state is None or state["batches"] is None:
            states = [generator.get_state() for generator in generators]
            return self._begin(states)
        global_state = torch.get_rng_state()
        try:
            self._prepare_workers(bool(state.get("continues")))
            for generator, value in zip(generators, state["generators"], strict=True):
                generator.set_state(value)
            iterator = self._begin(state["generators"])
            self._skip(iterator, state["batches"])
        finally:
            torch.set_rng_state(global_state)
        return iterator

    def _begin(self, generators: list[torch.Tensor]) -> Any:
        of_torch: Any = super()  # the next base of the mixin is torch's loader
        continues = self._has_workers
        iterator = of_torch.__iter__()
        if self._computes_on_request:
            iterator._sampler_iter = _Counted(iterator._sampler_iter)
        self._pass = weakref.ref(iterator), generators, continues
        return iterator

    @property
    def _has_workers(self) -> bool:
        """Whether the next epoch uses the persistent workers of the last one."""
        loader: Any = self
        return loader.persistent_workers and loader.num_workers > 0 and loader._iterator is not None

    def _prepare_workers(self, continues: bool) -> None:
        """Prepare the workers, so that the next epoch draws the same numbers for its order as the saved one.

        New workers draw their seed from the generator of the order; persistent workers do that in the first epoch only.

        Args:
            continues: True if the saved epoch used the persistent workers of the previous epoch.
        """
        loader: Any = self
        if not continues:
            loader._iterator = None
        elif not self._has_workers:
            of_torch: Any = super()
            of_torch.__iter__()

    @property
    def _computes_on_request(self) -> bool:
        """Whether a batch is computed when it is requested, so that no index is taken in advance."""
        loader: Any = self
        return not loader.num_workers and loader._dataset_kind == _DatasetKind.Map

    def _skip(self, iterator: Any, batches: int) -> None:
        for _ in range(batches):
            if self._computes_on_request:
                iterator._next_index()
                continue
            try:
                next(iterator)
            except StopIteration:
                return
            except Exception:  # the batch failed in the saved run, too
                continue

    def _generators(self) -> list[torch.Generator]:
        """Return the generators that determine the order: of torch, of the loader, and of its samplers."""
        loader: Any = self
        holders = loader, loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None)
        found = [torch.default_generator, *(getattr(holder, "generator", None) for holder in holders)]
        # A sampler may have a generator of NumPy or Python.
        return list(
            {id(generator): generator for generator in found if isinstance(generator, torch.Generator)}.values()
        )

    def _is_finished(self, batches: int) -> bool:
        loader: Any = self
        try:
            return batches >= len(loader)
        except TypeError:  # unknown length
            return False
