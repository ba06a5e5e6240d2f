"""Compute samples one by one: kernels first, then the user's Python code."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from dalify.base.fork_gate import working
from dalify.base.interrupts import kept_interrupts
from dalify.plugin.pytorch.dropin.datasets import locate
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.fetching import Fetcher
from dalify.plugin.pytorch.dropin.hints import SampleNote
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage
from dalify.plugin.pytorch.dropin.lowered import PythonStages
from dalify.plugin.pytorch.dropin.plan import Plan
from dalify.plugin.pytorch.dropin.sources import Source
from dalify.plugin.pytorch.dropin.torchvision_steps import Registered

__all__ = ["SampleLoader"]


_TRIALS = 4  # mirrored images compile other code
_SIZE = 160, 120
_warm: set[tuple[str, ...]] = set()


def _run_once(plan: Plan) -> None:
    """Compile the kernels of a plan by running it on black images, with separate random numbers."""
    draws = TorchDraws(torch.Generator(), random.Random(0))
    for _ in range(_TRIALS):
        lazy_image = LazyImage(np.zeros((*_SIZE, plan.channels), np.uint8))
        try:
            plan.sample(lazy_image, draws)
        except Exception:  # for instance too small; the user's images will raise the error
            return


class SampleLoader:
    """Computes samples, in the process whose generators they draw from.

    Args:
        dataset: the user's dataset.
        sources: the sources of its samples.
    """

    def __init__(self, dataset: Any, sources: dict[int, Source]) -> None:
        self._dataset = dataset
        self._sources = sources
        self._remaining = {id(source): PythonStages(source.plan.rest) for source in sources.values()}
        is_complete = all(source.plan.is_complete and source.target_transform is None for source in sources.values())
        self._fetcher = Fetcher(dataset, sources, list) if is_complete else None

    def warm_up(self) -> None:
        """Compile all necessary kernels, so that forked worker processes have them."""
        for source in self._sources.values():
            for plan in (source.plan, *self._remaining[id(source)].plans()):
                if plan.names not in _warm and not any(isinstance(step, Registered) for step in plan.steps):
                    _warm.add(plan.names)
                    with working(), kept_interrupts():
                        _run_once(plan)

    def samples(self, indices: Sequence[Any], draws: TorchDraws) -> list[Any]:
        """Compute the samples of a batch.

        Args:
            indices: an element of the batch sampler.
            draws: random numbers of this process.
        """
        if self._fetcher is not None:  # all of them at once
            return self._fetcher.fetch(indices, draws)
        return [self.sample(index, draws) for index in indices]

    def sample(self, index: Any, draws: TorchDraws) -> tuple[Any, Any]:
        """Compute one sample.

        Args:
            index: an element of the sampler.
            draws: random numbers of this process.

        Returns:
            the result of the transforms, and the label.

        Raises:
            Exception: the errors of the user's dataset.
        """
        with SampleNote(index, self._dataset):
            source, place = locate(self._sources, self._dataset, index)
            image, label = self._transformed(source, place, draws)
            return image, label if source.target_transform is None else source.target_transform(label)

    def _transformed(self, source: Source, place: Any, draws: TorchDraws) -> tuple[Any, Any]:
        plan = source.plan
        if plan.names:
            lazy_image, label = source.read(place, draws)
            image = plan.sample(lazy_image, draws)
        else:
            image, label = source.open(place)
        return self._remaining[id(source)](image), label
