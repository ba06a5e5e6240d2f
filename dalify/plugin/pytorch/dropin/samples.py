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
from dalify.plugin.pytorch.dropin.lowered import PythonStages
from dalify.plugin.pytorch.dropin.own import Registered
from dalify.plugin.pytorch.dropin.picture import Picture
from dalify.plugin.pytorch.dropin.plan import Plan
from dalify.plugin.pytorch.dropin.sources import Source

__all__ = ["SampleMaker"]


_TRIALS = 4  # some images are mirrored, which compiles other code
_SIZE = 160, 120
_warm: set[tuple[str, ...]] = set()


def _try(plan: Plan) -> None:
    """Compile the kernels of a plan by running it on black images, with separate random numbers."""
    draws = TorchDraws(torch.Generator(), random.Random(0))
    for _ in range(_TRIALS):
        picture = Picture(np.zeros((*_SIZE, plan.channels), np.uint8))
        try:
            plan.take_steps(picture, draws)
            plan.sample(picture, draws)
        except Exception:  # for instance too small; the user's images will raise the error
            return


class SampleMaker:
    """Makes samples, in the process whose generators they draw from.

    Args:
        dataset: the user's.
        sources: where its samples lie.
    """

    def __init__(self, dataset: Any, sources: dict[int, Source]) -> None:
        self._dataset = dataset
        self._sources = sources
        self._rests = {id(source): PythonStages(source.plan.rest) for source in sources.values()}
        is_whole = all(source.plan.is_whole and source.target_transform is None for source in sources.values())
        self._fetcher = Fetcher(dataset, sources, list) if is_whole else None

    def warm_up(self) -> None:
        """Have everything compiled that the samples need, so that worker processes find it when they are forked."""
        for source in self._sources.values():
            for plan in (source.plan, *self._rests[id(source)].plans()):
                if plan.names not in _warm and not any(isinstance(step, Registered) for step in plan.steps):
                    _warm.add(plan.names)
                    with working(), kept_interrupts():
                        _try(plan)

    def samples(self, indices: Sequence[Any], draws: TorchDraws) -> list[Any]:
        """Make the samples of a batch.

        Args:
            indices: what the batch sampler gave.
            draws: of this process.
        """
        if self._fetcher is not None:  # all of them at once
            return self._fetcher.fetch(indices, draws)
        return [self.sample(index, draws) for index in indices]

    def sample(self, index: Any, draws: TorchDraws) -> tuple[Any, Any]:
        """Make one sample.

        Args:
            index: what the sampler gave.
            draws: of this process.

        Returns:
            What the transforms give, and the label.

        Raises:
            Exception: what the user's dataset raises.
        """
        with SampleNote(index, self._dataset):
            source, place = locate(self._sources, self._dataset, index)
            image, label = self._transformed(source, place, draws)
            return image, label if source.target_transform is None else source.target_transform(label)

    def _transformed(self, source: Source, place: Any, draws: TorchDraws) -> tuple[Any, Any]:
        plan = source.plan
        if plan.names:
            picture, label = source.read(place, draws)
            plan.take_steps(picture, draws)
            image = plan.sample(picture, draws)
        else:
            image, label = source.open(place)
        return self._rests[id(source)](image), label
