"""torch's own loader over a faster dataset: what is known of the samples by dalify's kernels, the rest as Python.

Order, worker processes, their random states, timeouts and the end of them are torch's, because torch's iterators run.
They see a loader whose dataset is exchanged. In the process that makes the samples, random numbers are drawn from its
own generators, so they are torch's, too, whatever the user's code draws from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import _utils

from dalify.base.interrupts import kept_interrupts
from dalify.plugin.pytorch.dropin.collating import default_collate
from dalify.plugin.pytorch.dropin.datasets import Watch, find_sources
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.hints import NotedCollate, note_failed_start, note_failed_worker
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError
from dalify.plugin.pytorch.dropin.samples import SampleMaker

__all__ = ["ExchangedLoader", "FasterDataset", "torch_iterator"]


class FasterDataset:
    """Stands for a dataset of the user in torch's loader, and gives the same samples. It can be pickled if that can.

    Args:
        dataset: the user's.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.prepare()

    def prepare(self) -> None:
        """Look at the dataset as it is now: whoever started the worker may have changed it."""
        self._draws = TorchDraws(torch.default_generator)
        try:
            sources = find_sources(self.dataset)
        except NotRecognizedError:
            self._maker = self._watch = None
        else:
            self._maker, self._watch = SampleMaker(self.dataset, sources), Watch(sources)

    def warm_up(self) -> None:
        """Have everything compiled before workers are forked."""
        if self._maker is not None:
            self._maker.warm_up()

    def _look_again(self) -> None:
        # In the main process, the user may change the dataset at any time.
        if self._watch is not None and not self._watch.is_current():
            self.prepare()

    def __getitem__(self, index: Any) -> Any:
        self._look_again()
        return self.dataset[index] if self._maker is None else self._maker.sample(index, self._draws)

    def __getitems__(self, indices: Any) -> Any:
        self._look_again()
        if self._maker is not None:
            return self._maker.samples(indices, self._draws)
        if hasattr(self.dataset, "__getitems__"):
            return self.dataset.__getitems__(indices)
        return [self.dataset[index] for index in indices]

    def __len__(self) -> int:
        return len(self.dataset)

    def __getstate__(self) -> dict[str, Any]:
        return {"dataset": self.dataset}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.dataset = state["dataset"]
        self.prepare()


class _WorkerStart:
    """What a worker process does first: it shows the user's dataset to his function, and looks at it anew.

    Args:
        start: the user's `worker_init_fn`; None for none.
    """

    def __init__(self, start: Callable[[int], Any] | None) -> None:
        self.start = start

    def __call__(self, number: int) -> None:
        """Start a worker.

        Args:
            number: of the worker.
        """
        info: Any = _utils.worker._worker_info
        faster = info.dataset
        _utils.worker._worker_info = _utils.worker.WorkerInfo(
            id=info.id, num_workers=info.num_workers, seed=info.seed, dataset=faster.dataset
        )
        if self.start is None:
            return
        try:
            self.start(number)
        except Exception as error:
            note_failed_worker(error, self.start, number)
            raise
        faster.prepare()


class ExchangedLoader:
    """A loader as torch's iterators see it: the user's, but for some attributes."""

    def __init__(self, loader: Any, **attributes: Any) -> None:
        self._loader = loader
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def torch_iterator(loader: Any, get_iterator: Callable[[Any], Any], faster: FasterDataset | None) -> Any:
    """Make torch's iterator.

    Args:
        loader: the user's.
        get_iterator: torch's method, or that of the class between.
        faster: to take the place of the dataset; None to leave it.

    Returns:
        An iterator of one of torch's classes.
    """
    attributes: dict[str, Any] = {"collate_fn": NotedCollate(loader.collate_fn)}
    if faster is not None:
        attributes["dataset"] = faster
        if loader.num_workers:
            attributes["worker_init_fn"] = _WorkerStart(loader.worker_init_fn)
            faster.warm_up()
        elif loader.collate_fn is torch.utils.data.default_collate:
            attributes["collate_fn"] = NotedCollate(default_collate)
    try:
        with kept_interrupts():  # processes are forked, and what hooks of a fork raise is ignored
            return get_iterator(ExchangedLoader(loader, **attributes))
    except Exception as error:
        note_failed_start(error, loader.num_workers)
        raise
