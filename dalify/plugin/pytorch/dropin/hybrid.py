"""torch's loader with a faster dataset: dalify's kernels compute the supported transforms, Python the others.

Order, worker processes, random states, timeouts and shutdown are torch's, because its iterators are used with another
dataset. The process that computes a sample draws from its own generators, so all random numbers are torch's, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch.utils.data import _utils

from dalify.base.fork_gate import working
from dalify.base.interrupts import kept_interrupts
from dalify.plugin.pytorch.dropin.collating import default_collate
from dalify.plugin.pytorch.dropin.datasets import find_sources
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.fetching import Fetcher
from dalify.plugin.pytorch.dropin.hints import NotedCollate, note_failed_start, note_failed_worker
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError, TransformPlan
from dalify.plugin.pytorch.dropin.torchvision_steps import Registered
from dalify.plugin.pytorch.dropin.worker_batches import slot_collate

_TRIALS = 4  # several, because mirrored images need other compiled code
_SIZE = 160, 120
_compiled: set[tuple[str, ...]] = set()


def _compile(plan: TransformPlan) -> None:
    """Compile the kernels of a plan by running it on black images, with separate random numbers."""
    draws = TorchDraws(torch.Generator(), random.Random(0))
    for _ in range(_TRIALS):
        try:
            plan.sample(LazyImage(np.zeros((*_SIZE, plan.channels), np.uint8)), draws)
        except Exception:  # for example because the image is too small; the user's images will raise the error
            return


class AcceleratedDataset:
    """Replaces the user's dataset in torch's loader, with the same samples. It can be pickled if the dataset can."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.prepare()

    def prepare(self) -> None:
        """Analyze the dataset; also after the worker's initialization, which may have changed it."""
        self._draws = TorchDraws(torch.default_generator)
        self._fetcher: Fetcher | None = None
        with suppress(NotRecognizedError):
            self._fetcher = Fetcher(self.dataset, find_sources(self.dataset), None)

    def warm_up(self) -> None:
        """Compile all necessary kernels, so that forked worker processes need not."""
        for source in self._fetcher.sources.values() if self._fetcher is not None else ():
            for plan in source.plan.plans():
                if (
                    plan.names
                    and plan.names not in _compiled
                    and not any(isinstance(step, Registered) for step in plan.steps)
                ):
                    _compiled.add(plan.names)
                    with working(), kept_interrupts():
                        _compile(plan)

    def _current_fetcher(self) -> Fetcher | None:
        # In the main process, the user may change the dataset at any time.
        if self._fetcher is not None and not self._fetcher.change_monitor.is_unchanged():
            self.prepare()
        return self._fetcher

    def __getitem__(self, index: Any) -> Any:
        fetcher = self._current_fetcher()
        return self.dataset[index] if fetcher is None else fetcher.sample(index, self._draws)

    def __getitems__(self, indices: Any) -> Any:
        fetcher = self._current_fetcher()
        if fetcher is not None:
            return fetcher.samples(indices, self._draws)
        if hasattr(self.dataset, "__getitems__"):
            return self.dataset.__getitems__(indices)
        return [self.dataset[index] for index in indices]

    def __len__(self) -> int:
        return len(self.dataset)

    def __reduce__(self) -> tuple[Any, ...]:
        return AcceleratedDataset, (self.dataset,)


class _WorkerInitializer:
    """The `worker_init_fn` of worker processes: calls the user's function with the user's dataset as worker info.

    Args:
        function: the user's `worker_init_fn`; None for none.
    """

    def __init__(self, function: Callable[[int], Any] | None) -> None:
        self.function = function

    def __call__(self, number: int) -> None:
        """Initialize a worker.

        Args:
            number: index of the worker.
        """
        info: Any = _utils.worker._worker_info
        accelerated = info.dataset
        _utils.worker._worker_info = _utils.worker.WorkerInfo(
            id=info.id, num_workers=info.num_workers, seed=info.seed, dataset=accelerated.dataset
        )
        if self.function is None:
            return
        try:
            self.function(number)
        except Exception as error:
            note_failed_worker(error, self.function, number)
            raise
        accelerated.prepare()


class SubstituteLoader:
    """The user's loader with some other attributes, for torch's iterators."""

    def __init__(self, loader: Any, **attributes: Any) -> None:
        self._loader = loader
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def torch_iterator(
    loader: Any, get_iterator: Callable[[Any], Any], accelerated: AcceleratedDataset | None, *, reuses_memory: bool
) -> Any:
    """Return an iterator of torch.

    Args:
        loader: the user's loader.
        get_iterator: torch's method, or the method of a subclass.
        accelerated: replacement for the dataset; None to keep it.
        reuses_memory: whether batches are in memory that is used again.

    Returns:
        An instance of one of torch's iterator classes.
    """
    attributes: dict[str, Any] = {"collate_fn": NotedCollate(loader.collate_fn)}
    if accelerated is not None:
        attributes["dataset"] = accelerated
        if loader.num_workers:
            attributes["worker_init_fn"] = _WorkerInitializer(loader.worker_init_fn)
            accelerated.warm_up()
    if reuses_memory and loader.num_workers:
        attributes["collate_fn"] = slot_collate(loader, attributes["collate_fn"])
    elif reuses_memory and loader.collate_fn is torch.utils.data.default_collate:
        attributes["collate_fn"] = NotedCollate(default_collate)
    try:
        with kept_interrupts():  # processes are forked, and exceptions of fork hooks are ignored
            return get_iterator(SubstituteLoader(loader, **attributes))
    except Exception as error:
        note_failed_start(error, loader.num_workers)
        raise
