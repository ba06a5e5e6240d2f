"""``HabanaDataLoader``: the interface of torch's DataLoader and the log messages of Gaudi's, implemented by dalify.

Replace ``import habana_dataloader`` by ``from dalify.mediapipe import habana_dataloader``.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.base.source_line import SourceLine
from dalify.mediapipe.ssd_dataset import SsdFetcher, SsdSource, check_samples, is_ssd_dataset
from dalify.plugin.pytorch.dropin.hybrid import AcceleratedDataset
from dalify.plugin.pytorch.dropin.iterators import CallerIterator, ThreadIterator
from dalify.plugin.pytorch.dropin.loader import DataLoader, LoaderReport
from dalify.plugin.pytorch.dropin.lowering import check_settings
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError

__all__ = ["HabanaDataLoader", "falls_back"]

_log = logging.getLogger("dalify.dataloader")
_VARIABLE = "DATALOADER_FALLBACK_EN"
_REQUESTED = "LO00"  # reason code of backend="torch"
_TRUE = ("1", "true", "t", "yes", "y", "on")
_FALSE = ("0", "false", "f", "no", "n", "off")


def falls_back() -> bool:
    """Return whether ``DATALOADER_FALLBACK_EN`` allows a fallback to torch's loader; the default is true.

    Raises:
        ArgumentValueError: the variable is neither true nor false.
    """
    text = os.environ.get(_VARIABLE, "true").strip().lower()
    if text not in (*_TRUE, *_FALSE):
        raise ArgumentValueError(
            f"the environment variable {_VARIABLE} is {text!r}; it must be one of {', '.join((*_TRUE, *_FALSE))}."
        )
    return text in _TRUE


class HabanaDataLoader(DataLoader):
    """A loader with the interface and batches of torch's; see ``dalify.plugin.pytorch`` for what is accelerated.

    In addition to dalify's loader, it supports COCO with the transforms of SSD's reference programs (COCODetection,
    SSDTransformer), recognized by their attributes. Some samples are computed both ways when the loader is created; it
    falls back to torch's loader unless they are bit-identical.

    Gaudi's restrictions do not apply: any number of workers, any sampler (its order is kept), pin_memory, drop_last and
    collate_fn, and any parameters of the transforms are supported. If the dataset cannot be accelerated, torch's loader
    is used, after the message of Gaudi's loader in the log ``dalify.dataloader``.

    Args:
        args: arguments of torch's DataLoader.
        kwargs: arguments of torch's DataLoader.

    Attributes:
        fallback_reason: why torch's loader is used; None if dalify's is used.

    Raises:
        ArgumentValueError: the dataset is None; or it cannot be accelerated and ``DATALOADER_FALLBACK_EN`` is false.

    Example:
        >>> loader = HabanaDataLoader(
        ...     dataset, batch_size=64, sampler=sampler, num_workers=8, pin_memory=True
        ... )  # doctest: +SKIP
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.fallback_reason: str | None = None
        self._tried: tuple[Any, Any] | None = None
        super().__init__(*args, **kwargs)
        if self.dataset is None:
            raise ArgumentValueError("'dataset' can not be None", line=SourceLine.capture())
        report = self.explain()
        if report.is_accelerated:
            return
        if not falls_back():
            _log.error("Habana dataloader configuration failed: %s", report.reason)
            raise ArgumentValueError(
                f"this loader cannot be accelerated: {report.reason}.",
                line=SourceLine.capture(),
                hint=f"{report.hint} Set {_VARIABLE}=true to fall back to torch's loader.".lstrip(),
            )
        self.fallback_reason = report.reason
        if self.on_fallback == "warn":
            self.on_fallback = "silent"  # one message is enough
        _log.warning(
            "Failed to initialize Habana Dataloader, error: %s\nRunning with PyTorch Dataloader", report.reason
        )

    def explain(self) -> LoaderReport:
        """Report what runs where."""
        report = super().explain()
        if not is_ssd_dataset(self.dataset) or report.code == _REQUESTED:
            return report
        try:
            source = self._ssd_source()
        except NotRecognizedError as error:
            return replace(report, reason=error.reason, hint=error.hint)
        names = " → ".join(source.plan.names)
        return LoaderReport("full", (f"{source.description}: {names} by dalify, boxes by the program's own encoder",))

    def _ssd_source(self) -> SsdSource:
        """Recognize COCO with SSD's transforms; verified once for each dataset and transform.

        Raises:
            NotRecognizedError: something is not recognized, or results differ.
        """
        if not self._auto_collation or self.worker_init_fn is not None or (self.timeout and not self.num_workers):
            raise NotRecognizedError("batch_size is None, worker_init_fn is set, or timeout is set without workers")
        check_settings()
        dataset: Any = self.dataset
        source = SsdSource(dataset)
        tried_dataset, tried_transform = self._tried or (None, None)
        if tried_dataset is not dataset or tried_transform is not dataset.transform:
            check_samples(source)
            self._tried = dataset, dataset.transform
        return source

    def _get_iterator(self) -> Any:
        if not is_ssd_dataset(self.dataset) or self.fallback_reason is not None:
            return super()._get_iterator()
        is_default = self.collate_fn is torch.utils.data.default_collate
        fetcher = SsdFetcher(self._ssd_source(), None if is_default else self.collate_fn)
        return ThreadIterator(self, fetcher) if self.num_workers else CallerIterator(self, fetcher, AcceleratedDataset)

    @property
    def accelerated(self) -> bool:
        """Whether dalify produces the batches."""
        return self.fallback_reason is None
