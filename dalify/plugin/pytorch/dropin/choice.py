"""Selects the implementation of a loader: dalify, dalify together with user code in torch's workers, or torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from torch.utils.data.dataloader import _DatasetKind

from dalify.plugin.pytorch.dropin.collating import collates_as_torch
from dalify.plugin.pytorch.dropin.datasets import find_sources
from dalify.plugin.pytorch.dropin.gathering import samples_in_memory
from dalify.plugin.pytorch.dropin.lowering import Lowered, check_settings, lower_transform
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError, Reason
from dalify.plugin.pytorch.dropin.sources import Source

# With torchvision's transforms of Pillow images, a thread holds the GIL for 40 % of its time (py-spy,
# TrivialAugmentWide on photographs), so more threads would wait for each other.
_THREADS_FOR_PYTHON = 4
_NO_IMAGES = ("DS02", "DS03")
UNCHANGED = "LO00"  # code of the reason that the user asked for torch's loader


@dataclass(frozen=True)
class Choice:
    """The implementation of a loader, and the reasons.

    Attributes:
        mode: ``"full"``: dalify, in threads instead of workers; ``"hybrid"``: torch's loader with its workers, where
            dalify computes the supported part of each sample; ``"torch"``: torch's loader.
        sources: the sources of the samples; empty if torch reads them, or they are in memory.
        reasons: the reasons against the mode ``"full"``.
        in_memory: samples in arrays, see `samples_in_memory`; otherwise None.
    """

    mode: Literal["full", "hybrid", "torch"]
    sources: Mapping[int, Source] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()
    in_memory: Any = None


def choose(loader: Any) -> Choice:
    """Return the choice for the current state of a loader.

    Args:
        loader: a ``torch.utils.data.DataLoader`` or an instance of a subclass.
    """
    try:
        _check_loader(loader)
        sources = find_sources(loader.dataset)
    except NotRecognizedError as error:
        reason = error.reason
        samples = samples_in_memory(loader.dataset) if reason.code in _NO_IMAGES else None
        if samples is not None:
            reasons = _reasons_for_processes(loader, {})
            if not collates_as_torch(loader):
                hint = "Omit collate_fn to select whole batches."
                reasons.append(Reason("the samples are in memory, and collate_fn needs them one by one", hint, "CO01"))
            return Choice("torch", {}, tuple(reasons)) if reasons else Choice("full", {}, (), samples)
        hint = " ".join(filter(None, (reason.hint, _hint_for_transform(reason.code, loader.dataset))))
        return Choice("torch", {}, (reason._replace(hint=hint),))
    reasons = [source.plan.reason for source in sources.values() if source.plan.reason is not None]
    if reasons and not any(plan.names for source in sources.values() for plan in source.plan.plans()):
        return Choice("torch", {}, (reasons[0],))
    reasons += _reasons_for_processes(loader, sources)
    return Choice("hybrid" if reasons else "full", sources, tuple(reasons))


def _hint_for_transform(code: str, dataset: Any) -> str:
    transform = getattr(dataset, "__dict__", {}).get("transform")  # not getattr: a property may raise
    if code not in ("DS02", "DS04") or type(transform) is Lowered or not lower_transform(transform, 3).names:
        return ""
    return "dataset.transform = lower(dataset.transform), of dalify.plugin.pytorch, makes its transforms faster."


def _check_loader(loader: Any) -> None:
    if loader._dataset_kind != _DatasetKind.Map:
        raise NotRecognizedError("the dataset is iterable", "Datasets with __getitem__ are supported.", "DS01")
    if not loader.num_workers and loader.timeout:
        raise NotRecognizedError("timeout is set without workers", "Omit timeout, or set num_workers.", "LO01")
    check_settings()


def _reasons_for_processes(loader: Any, sources: Mapping[int, Source]) -> list[Reason]:
    """Return the reasons for worker processes if all transforms are supported."""
    found = []
    if any(source.target_transform is not None for source in sources.values()):
        hint = "Convert the labels once, in the dataset, so that threads can compute the batches."
        found.append(Reason("the dataset has a target_transform", hint, "TF02"))
    if any(source.slow_labels for source in sources.values()):
        found.append(Reason("Python reads the dataset's labels from files", code="DS07"))
    source = next((source for source in sources.values() if source.user_code), None)
    if source is not None:
        hint = "Read labels and paths from lists, arrays or tables that are attributes of the dataset."
        name, code = source.user_function, source.user_code
        text = f"{name} uses {code}, which several threads may not be able to use at the same time"
        found.append(Reason(text, hint, "DS08"))
    if loader.num_workers and loader.worker_init_fn is not None:
        hint = "Omit worker_init_fn to compute the batches in threads; torch.manual_seed or generator= sets the seeds."
        found.append(Reason("worker_init_fn is set, which must be called in worker processes", hint, "WI01"))
    if loader.num_workers > _THREADS_FOR_PYTHON and any(
        source.plan.calls_torchvision or source.is_joint for source in sources.values()
    ):
        reason = f"some transforms are torchvision's Python code, which scales to {_THREADS_FOR_PYTHON} threads only"
        found.append(Reason(reason, code="LO03"))
    if not loader._auto_collation:
        hint = "Set batch_size to compute whole batches."
        found.append(Reason("batch_size is None: samples are not collated", hint, "LO02"))
    return found
