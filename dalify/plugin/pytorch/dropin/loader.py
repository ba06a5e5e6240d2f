"""The DataLoader to import instead of torch's."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import torch.utils.data
from torch.utils.data.dataloader import _DatasetKind

from dalify.plugin.pytorch.dropin.datasets import check_whole, find_sources
from dalify.plugin.pytorch.dropin.fetching import Fetcher, describe
from dalify.plugin.pytorch.dropin.iterators import CallerIterator, ThreadIterator
from dalify.plugin.pytorch.dropin.lowering import NotRecognisedError, check_settings

__all__ = ["DataLoader", "LoaderReport"]

_logger = logging.getLogger("dalify")


@dataclass(frozen=True)
class LoaderReport:
    """What runs where.

    Attributes:
        is_accelerated: dalify makes the batches; else torch's own loader does.
        lines: what happens in which place, in order.
        reason: why torch's loader runs; empty where dalify's does.
        hint: what would help; empty where nothing is known to.
    """

    is_accelerated: bool
    lines: tuple[str, ...]
    reason: str = ""
    hint: str = ""

    def __str__(self) -> str:
        return "\n".join(self.lines)


class DataLoader(torch.utils.data.DataLoader):
    """torch's DataLoader, with the same arguments and the same batches, made by dalify where that can be had exactly.

    Known are datasets that read as torchvision's ImageFolder, CIFAR10 and MNIST do, Subset and ConcatDataset of them,
    and the transforms Resize, CenterCrop, RandomCrop, RandomResizedCrop, RandomHorizontalFlip, RandomVerticalFlip, Pad,
    Grayscale, ToTensor, PILToTensor, ConvertImageDtype and Normalize, of ``torchvision.transforms``, in Compose or
    alone. Their batches are torch's byte for byte: the sampler gives the indices, random numbers are those that torch's
    workers would draw, pixels are Pillow's. Everything else is left to torch's loader as a whole; the logger
    ``dalify`` then tells once why, and `explain` tells it at any time.

    ``num_workers`` threads stand for worker processes. `worker_init_fn` and ``batch_size=None`` are torch's business.

    Tensors of PILToTensor are contiguous, while those of torch are views of another order of memory without workers.

    Example:
        >>> loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=4)  # doctest: +SKIP
        >>> print(loader.explain())  # doctest: +SKIP
        ImageFolder of 50000 files: decoded and transformed by dalify's kernels (Resize → CenterCrop → ToTensor)
        4 threads, each with the random numbers of one of torch's workers
    """

    _was_told = False

    def explain(self) -> LoaderReport:
        """Tell what runs where, without running anything."""
        try:
            fetcher = self._fetcher()
        except NotRecognisedError as error:
            lines = ["torch's DataLoader makes the batches", f"because {error.reason}"]
            if error.hint:
                lines.append(f"hint: {error.hint}")
            return LoaderReport(False, tuple(lines), error.reason, error.hint)
        lines = describe(fetcher.sources)
        if self.num_workers:
            lines.append(f"{self.num_workers} threads, each with the random numbers of one of torch's workers")
        else:
            lines.append("in the thread that asks for the batch, with the random numbers of torch's own generator")
        if fetcher.collate is not None:
            lines.append("the collate function gets the samples in the thread that asks for the batch")
        return LoaderReport(True, tuple(lines))

    def _fetcher(self) -> Fetcher:
        if self._dataset_kind != _DatasetKind.Map:
            raise NotRecognisedError("the dataset is iterable", "Datasets with __getitem__ are known.")
        if not self._auto_collation:
            raise NotRecognisedError("batch_size is None: samples are not put together", "Give a batch_size.")
        if self.num_workers and self.worker_init_fn is not None:
            raise NotRecognisedError(
                "worker_init_fn is given, and there are no worker processes to call it in",
                "Leave it away: seeds follow from torch.manual_seed or generator=.",
            )
        if not self.num_workers and self.timeout:
            raise NotRecognisedError("timeout is given without workers")
        check_settings()
        is_default = self.collate_fn is torch.utils.data.default_collate
        sources = find_sources(self.dataset)
        check_whole(sources)
        return Fetcher(self.dataset, sources, None if is_default else self.collate_fn)

    def _get_iterator(self) -> Any:
        try:
            fetcher = self._fetcher()
        except NotRecognisedError as error:
            if not self._was_told:
                self._was_told = True
                hint = f" Hint: {error.hint}" if error.hint else ""
                _logger.warning("DataLoader: torch's own loader runs, because %s.%s", error.reason, hint)
            return super()._get_iterator()
        if self.num_workers == 0:
            return CallerIterator(self, fetcher)
        self.check_worker_number_rationality()
        return ThreadIterator(self, fetcher)
