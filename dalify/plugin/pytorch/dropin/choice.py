"""Select the implementation of a loader: dalify, dalify together with user code in torch's workers, or torch.

All reasons that prevent the use of dalify's kernels are collected here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from torch.utils.data.dataloader import _DatasetKind

from dalify.plugin.pytorch.dropin.datasets import find_sources
from dalify.plugin.pytorch.dropin.lowering import check_settings, lower_transform
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError
from dalify.plugin.pytorch.dropin.registration import WRAPPERS
from dalify.plugin.pytorch.dropin.sources import Source

__all__ = ["Choice", "Mode", "choose"]

# With torchvision's transforms of Pillow images, a thread holds the GIL for 40 % of its time (py-spy,
# TrivialAugmentWide on photographs), so that more threads only wait for each other.
_THREADS_FOR_PYTHON = 4


class Mode(Enum):
    """Which library computes the batches.

    Attributes:
        FULL: dalify, in threads instead of workers.
        HYBRID: torch's loader with its workers; dalify computes the supported part of each sample.
        TORCH: torch's loader, unchanged.
    """

    FULL = "full"
    HYBRID = "hybrid"
    TORCH = "torch"


@dataclass(frozen=True)
class Choice:
    """Which library computes the batches, and the reason.

    Attributes:
        mode: the mode.
        sources: the sources of the samples; empty if torch reads them.
        reasons: the obstacles to the mode FULL.
    """

    mode: Mode
    sources: Mapping[int, Source] = field(default_factory=dict)
    reasons: tuple[NotRecognizedError, ...] = ()


def choose(loader: Any) -> Choice:
    """Return the choice for the current state of a loader.

    Args:
        loader: a ``torch.utils.data.DataLoader`` or an instance of a subclass.
    """
    try:
        _check_loader(loader)
        sources = find_sources(loader.dataset)
    except NotRecognizedError as error:
        hint = error.hint + _hint_for_transform(error.code, loader.dataset)
        # A new error: the traceback of the old one would keep the caller's frames alive, and iterators in them.
        return Choice(Mode.TORCH, {}, (NotRecognizedError(error.reason, hint, error.code),))
    rests = [NotRecognizedError(plan.rest_reason, plan.rest_hint, "TF01") for plan in _unfinished(sources)]
    if rests and not any(source.plan.names or _resumes(source) for source in sources.values()):
        return Choice(Mode.TORCH, {}, (rests[0],))
    reasons = [*rests, *_reasons_for_processes(loader, sources)]
    return Choice(Mode.HYBRID if reasons else Mode.FULL, sources, tuple(reasons))


def _hint_for_transform(code: str, dataset: Any) -> str:
    transform = getattr(dataset, "__dict__", {}).get("transform")  # not getattr: a property may raise
    if code != "DS02" or type(transform) in WRAPPERS or not lower_transform(transform, 3).names:
        return ""
    return " dataset.transform = lower(dataset.transform), of dalify.plugin.pytorch, makes its transforms faster."


def _check_loader(loader: Any) -> None:
    if loader._dataset_kind != _DatasetKind.Map:
        raise NotRecognizedError("the dataset is iterable", "Datasets with __getitem__ are supported.", "DS01")
    if not loader.num_workers and loader.timeout:
        raise NotRecognizedError("timeout is set without workers", "Omit it, or set num_workers.", "LO01")
    check_settings()


def _resumes(source: Source) -> bool:
    return any(is_lowered for _, is_lowered in source.rest.parts(are_tensors=False))


def _unfinished(sources: Mapping[int, Source]) -> list[Any]:
    return [source.plan for source in sources.values() if not source.plan.is_complete]


def _reasons_for_processes(loader: Any, sources: Mapping[int, Source]) -> list[NotRecognizedError]:
    """Return the parts that need worker processes, although all transforms are supported."""
    found = []
    if any(source.target_transform is not None for source in sources.values()):
        hint = "Convert the labels once, in the dataset, so that threads can compute the batches."
        found.append(NotRecognizedError("the dataset has a target_transform", hint, "TF02"))
    if any(source.slow_labels for source in sources.values()):
        found.append(NotRecognizedError("Python reads the dataset's labels from files", code="DS07"))
    if loader.num_workers and loader.worker_init_fn is not None:
        hint = "Without it, threads compute the batches; torch.manual_seed or generator= determines the seeds."
        found.append(
            NotRecognizedError("worker_init_fn is set, which must be called in worker processes", hint, "WI01")
        )
    if loader.num_workers > _THREADS_FOR_PYTHON and any(source.plan.calls_torchvision for source in sources.values()):
        reason = f"some transforms are torchvision's Python code, which scales to {_THREADS_FOR_PYTHON} threads only"
        found.append(NotRecognizedError(reason, code="LO03"))
    if not loader._auto_collation:
        hint = "Set batch_size to compute whole batches."
        found.append(NotRecognizedError("batch_size is None: samples are not collated", hint, "LO02"))
    return found
