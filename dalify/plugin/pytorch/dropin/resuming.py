"""Save the position in an epoch of a loader, and resume it in another process."""

from __future__ import annotations

import weakref
from typing import Any

import torch.utils.data
from torch.utils.data.dataloader import _DatasetKind

from dalify.base.errors import CheckpointError

__all__ = ["Resumable"]


class Resumable:
    """Mixin with `state_dict` and `load_state_dict`, like torchdata's StatefulDataLoader."""

    _pass: tuple[weakref.ref[Any], list[torch.Tensor]] | None = None
    _resume_from: dict[str, Any] | None = None

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the current epoch: the number of returned batches, and the state of the order.

        The state is for ``torch.save`` or a checkpoint of a framework. Without workers, augmentations draw from torch's
        own generator; the caller must then save and restore its state, like that of the model.
        """
        iterator = None if self._pass is None else self._pass[0]()
        if iterator is None or self._is_finished(iterator._num_yielded):
            return {"batches": None, "generators": []}
        assert self._pass is not None
        return {"batches": iterator._num_yielded, "generators": self._pass[1]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue the epoch of a `state_dict`: the next iterator returns its remaining batches.

        With workers, the returned batches are computed again and discarded, to restore the random numbers of the
        workers; without workers, they are skipped.

        Args:
            state: of a loader with the same arguments. Unknown entries are ignored.

        Raises:
            CheckpointError: not a state of a loader, or of a loader with other samplers.
        """
        if "batches" not in state or "generators" not in state:
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
        for generator, value in zip(generators, state["generators"], strict=True):
            generator.set_state(value)
        iterator = self._begin(state["generators"])
        self._skip(iterator, state["batches"])
        torch.set_rng_state(global_state)
        return iterator

    def _begin(self, generators: list[torch.Tensor]) -> Any:
        of_torch: Any = super()  # the next base of the mixin is torch's loader
        iterator = of_torch.__iter__()
        self._pass = weakref.ref(iterator), generators
        return iterator

    def _skip(self, iterator: Any, batches: int) -> None:
        loader: Any = self
        if loader.num_workers or loader._dataset_kind != _DatasetKind.Map:
            for _ in range(batches):
                next(iterator)
            return
        for _ in range(batches):
            iterator._next_index()
        iterator._num_yielded = batches

    def _generators(self) -> list[torch.Generator]:
        """Return the generators that determine the order: torch's default, the loader's, and those of its samplers."""
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
