"""The replacement for torch's DataLoader."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch.utils.data

from dalify.base.errors import NotAcceleratedError, check_option
from dalify.base.wording import counted
from dalify.plugin.pytorch.dropin.choice import UNCHANGED, Choice, choose
from dalify.plugin.pytorch.dropin.collating import collates_as_torch
from dalify.plugin.pytorch.dropin.datasets import copied_lists
from dalify.plugin.pytorch.dropin.fetching import Fetcher
from dalify.plugin.pytorch.dropin.gathering import ColumnFetcher, describe_columns
from dalify.plugin.pytorch.dropin.hints import NotedCollate
from dalify.plugin.pytorch.dropin.hybrid import AcceleratedDataset, torch_iterator
from dalify.plugin.pytorch.dropin.iterators import CallerIterator, ThreadIterator
from dalify.plugin.pytorch.dropin.plan import Reason
from dalify.plugin.pytorch.dropin.resuming import Resumable

_Sample = TypeVar("_Sample", covariant=True)  # covariant as in torch's class
_logger = logging.getLogger("dalify")
TORCH_ITERATOR: Any = torch.utils.data.DataLoader._get_iterator


class _Option(NamedTuple):
    """An option of loaders that an environment variable overrides; the first value is the default."""

    name: str
    variable: str
    values: tuple[str, ...]

    def of(self, loader: Any) -> str:
        """Return the value for a loader; ArgumentValueError if it is not one of the values."""
        variable = os.environ.get(self.variable)
        value = variable or getattr(loader, self.name, self.values[0])
        check_option(self.variable if variable else self.name, value, self.values)
        return value


_BACKEND = _Option("backend", "DALIFY_DATALOADER_BACKEND", ("auto", "dalify", "torch"))
_ON_FALLBACK = _Option("on_fallback", "DALIFY_DATALOADER_FALLBACK", ("warn", "silent", "raise"))


@dataclass(frozen=True)
class LoaderReport:
    """The parts of the batches that dalify and torch compute.

    Attributes:
        mode: ``"full"``: dalify computes the batches; ``"hybrid"``: torch's loader runs, and dalify computes the
            supported part of each sample; ``"torch"``: torch's loader computes everything.
        lines: the report, one line per fact.
        code: short name of the first reason against the mode ``"full"``; empty in that mode.
        reason: the first reason as a sentence.
        hint: how to remove it; empty if unknown.
    """

    mode: str
    lines: tuple[str, ...]
    code: str = ""
    reason: str = ""
    hint: str = ""

    @property
    def is_accelerated(self) -> bool:
        """Whether dalify computes samples, at least in part."""
        return self.mode != "torch"

    def __str__(self) -> str:
        return "\n".join(self.lines)


def explain(loader: Any) -> LoaderReport:
    """Return the parts of the batches that dalify and torch compute, without computing anything.

    Args:
        loader: a ``torch.utils.data.DataLoader`` or an instance of a subclass.
    """
    choice = _choose(loader)
    lines: list[str] = []
    if choice.in_memory is not None:
        lines.append(describe_columns(loader.dataset))
    elif not choice.sources:
        lines.append("torch's DataLoader computes the batches")
    lines += [f"{source.description}: {source.plan.describe()}" for source in choice.sources.values()]
    for reason in choice.reasons:
        lines.append(f"[{reason.code}] {reason.text}")
        lines += [f"hint: {reason.hint}"] if reason.hint else []
    if not loader.num_workers:
        lines.append("in the thread that requests the batch, with the random numbers of the process")
    elif choice.mode == "full":
        threads = "1 thread" if loader.num_workers == 1 else f"{loader.num_workers} threads, each"
        lines.append(f"{threads} with the random numbers of one of torch's workers")
        if not collates_as_torch(loader):
            lines.append("the collate function runs in the thread that requests the batch")
    else:
        memory = "" if choice.reasons[0].code == UNCHANGED else ", with reused shared memory for batches"
        lines.append(f"{counted(loader.num_workers, 'worker process')} of torch{memory}")
    first = choice.reasons[0] if choice.reasons else Reason("", code="")
    return LoaderReport(choice.mode, tuple(lines), first.code, first.text, first.hint)


def _choose(loader: Any) -> Choice:
    if _BACKEND.of(loader) == "torch":
        return Choice("torch", {}, (Reason("backend='torch' is set", code=UNCHANGED),))
    return choose(loader)


def make_iterator(loader: Any, get_iterator: Callable[[Any], Any] = TORCH_ITERATOR) -> Any:
    """Return an iterator over one epoch of a loader.

    Args:
        loader: a ``torch.utils.data.DataLoader`` or an instance of a subclass.
        get_iterator: torch's method, or the method of a subclass.

    Raises:
        NotAcceleratedError: only torch's loader supports it, and `on_fallback` is ``"raise"``.
    """
    choice = _choose(loader)
    if choice.mode == "full":
        if loader.num_workers == 0:
            return CallerIterator(loader, _fetcher(loader, choice))
        loader.check_worker_number_rationality()
        return ThreadIterator(loader, _fetcher(loader, choice))
    if choice.mode == "hybrid":
        return torch_iterator(loader, get_iterator, AcceleratedDataset(loader.dataset), reuses_memory=True)
    _report_fallback(loader, choice.reasons[0])
    return torch_iterator(loader, get_iterator, None, reuses_memory=choice.reasons[0].code != UNCHANGED)


def _fetcher(loader: Any, choice: Choice) -> Fetcher:
    """Return the fetcher of a loader in the mode ``"full"``; that of threads has copies of lists."""
    has_copies = loader.num_workers > 0
    if choice.in_memory is not None:
        return ColumnFetcher(loader.dataset, choice.in_memory, has_copies)
    collate = None if collates_as_torch(loader) else NotedCollate(loader.collate_fn)
    if has_copies:
        return Fetcher(*copied_lists(loader.dataset, choice.sources), collate)
    return Fetcher(loader.dataset, dict(choice.sources), collate)


def _report_fallback(loader: Any, reason: Reason) -> None:
    """Warn once per loader that torch's loader is used, or raise an error."""
    if reason.code == UNCHANGED:
        return
    on_fallback = _ON_FALLBACK.of(loader)
    if on_fallback == "raise" or _BACKEND.of(loader) == "dalify":
        raise NotAcceleratedError(f"DataLoader: not accelerated: [{reason.code}] {reason.text}.", hint=reason.hint)
    if on_fallback == "warn" and not getattr(loader, "_is_fallback_reported", False):
        loader._is_fallback_reported = True
        hint = f" Hint: {reason.hint}" if reason.hint else ""
        _logger.warning("DataLoader: torch's own loader runs: [%s] %s.%s", reason.code, reason.text, hint)


class Accelerated:
    """Mixin for loaders of torch: dalify computes the batches if it supports dataset and transforms."""

    backend = "auto"
    on_fallback = "warn"

    def explain(self) -> LoaderReport:
        """Return the parts that dalify and torch compute, without computing anything."""
        return explain(self)

    def _get_iterator(self) -> Any:
        of_torch: Any = super(Accelerated, type(self))  # the next base of the mixin is torch's loader
        return make_iterator(self, of_torch._get_iterator)


class DataLoader(Resumable, Accelerated, torch.utils.data.DataLoader[_Sample]):
    """torch's DataLoader with the same arguments and the same batches, computed by dalify where they are identical.

    Supported are thirty of torchvision's datasets, from ImageFolder to Cityscapes (listed in the module
    ``dropin.known``), Subset and ConcatDataset of them, and nearly all transforms of ``torchvision.transforms`` and
    ``torchvision.transforms.v2`` from one image to one image (``dropin.lowering`` and ``dropin.torchvision_steps``).
    Datasets of Hugging Face are supported if a function set by ``set_transform`` transforms the images
    (``dropin.hugging_face``). Your own classes are supported if ``__getitem__`` opens an image with Pillow, or decodes
    it with ``torchvision.io`` or ``cv2.imread``, and passes it to ``self.transform``, alone or with a mask
    (``dropin.image_getitem``);
    `register_dataset` and `register_transform` add others. Batches of torch's TensorDataset, StackDataset,
    ConcatDataset and Subset, and of classes whose ``__getitem__`` only returns rows of tensors, arrays and lists
    (``dropin.getitem``), are selected at once; their tensors and arrays must not be changed while threads read them.
    Batches are identical to torch's, byte for byte: the sampler returns the indices, random numbers are those of
    torch's workers, and pixels are those of Pillow. There are three modes; `explain` returns the mode of a loader and
    the reason:

    - *full*: dalify computes everything, in ``num_workers`` threads instead of worker processes.
    - *hybrid*: Python code needs worker processes: a transform of yours, a target transform, functions that your
      ``__getitem__`` calls, a `worker_init_fn`. torch's loader and its workers run, and dalify computes the supported
      part of each sample.
    - *torch*: the dataset is not supported. torch's loader runs, and the logger ``dalify`` warns once.

    In the modes *hybrid* and *torch*, the workers put batches into shared memory that is used again when all tensors of
    a batch are released. torch allocates and maps new memory for each tensor, which often takes longer than the copy.

    Exceptions have the same type as with torch's loader, and a note with a hint. `state_dict` and `load_state_dict`
    resume in the middle of an epoch.

    Args:
        dataset: as in torch, like all arguments up to `in_order`.
        backend: ``"auto"``; ``"dalify"``: raise if torch's loader would run; ``"torch"``: use torch's loader unchanged.
            The environment variable DALIFY_DATALOADER_BACKEND overrides it.
        on_fallback: if torch's loader is used: ``"warn"`` logs a warning, ``"silent"`` does nothing, ``"raise"``
            raises `NotAcceleratedError`. The environment variable DALIFY_DATALOADER_FALLBACK overrides it.

    Raises:
        ArgumentValueError: an unknown `backend` or `on_fallback`.
        Exception: the errors of torch for its arguments.

    Example:
        >>> from dalify.plugin.pytorch import DataLoader
        >>> loader = DataLoader(dataset, batch_size=2, shuffle=True)
        >>> images, labels = next(iter(loader))
        >>> images.shape, labels.shape
        (torch.Size([2, 3, 24, 24]), torch.Size([2]))
        >>> print(loader.explain())
        ImageFolder of 5 files: Resize → CenterCrop → ToTensor by dalify
        in the thread that requests the batch, with the random numbers of the process
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        backend: str = "auto",
        on_fallback: str = "warn",
    ) -> None:
        self.backend = backend  # attributes named like arguments: Lightning creates loaders again from them
        self.on_fallback = on_fallback
        _BACKEND.of(self)
        _ON_FALLBACK.of(self)
        super().__init__(
            dataset,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            num_workers,
            collate_fn,
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            pin_memory_device=pin_memory_device,
            in_order=in_order,
        )
