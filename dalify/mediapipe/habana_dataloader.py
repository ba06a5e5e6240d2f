"""``HabanaDataLoader``: the call of torch's DataLoader, the messages of Gaudi's, and dalify behind it.

Alone because programs import it from here: ``import habana_dataloader`` becomes
``from dalify.mediapipe import habana_dataloader``.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.base.source_line import SourceLine
from dalify.mediapipe.ssd_dataset import SsdFetcher, SsdSource, has_boxes, try_out
from dalify.plugin.pytorch.dropin.hybrid import FasterDataset
from dalify.plugin.pytorch.dropin.iterators import CallerIterator, ThreadIterator
from dalify.plugin.pytorch.dropin.loader import DataLoader, LoaderReport
from dalify.plugin.pytorch.dropin.lowering import check_settings
from dalify.plugin.pytorch.dropin.plan import NotRecognisedError

__all__ = ["HabanaDataLoader", "falls_back"]

_log = logging.getLogger("dalify.dataloader")
_VARIABLE = "DATALOADER_FALLBACK_EN"
_ASKED_FOR = "LO00"  # the code of the reason that backend="torch" is
_TRUE = ("1", "true", "t", "yes", "y", "on")
_FALSE = ("0", "false", "f", "no", "n", "off")


def falls_back() -> bool:
    """Tell whether torch's own loader may stand in, by the variable ``DATALOADER_FALLBACK_EN``; by default it may.

    Raises:
        ArgumentValueError: the variable is neither true nor false.
    """
    text = os.environ.get(_VARIABLE, "true").strip().lower()
    if text not in (*_TRUE, *_FALSE):
        raise ArgumentValueError(
            f"the environment variable {_VARIABLE} is {text!r}; it has to be one of {', '.join((*_TRUE, *_FALSE))}."
        )
    return text in _TRUE


class HabanaDataLoader(DataLoader):
    """A loader of the same call and the same batches as torch's; see ``dalify.plugin.pytorch`` for what is accelerated.

    Besides what dalify's loader knows, it takes COCO with the transforms of SSD's reference programs (COCODetection,
    SSDTransformer), recognised by what they hold; some samples are made both ways when the loader is made, and it
    stands back where they are not the same to the last bit.

    Gaudi's limits do not hold: any number of workers, any sampler (its order is kept), pin_memory, drop_last and
    collate_fn, and any parameters of the transforms. What cannot be accelerated is done by torch's own loader, after
    the message that Gaudi's gives, in the log ``dalify.dataloader``.

    Args:
        args: of torch's DataLoader.
        kwargs: likewise.

    Attributes:
        fallback_reason: why torch's own loader is at work; None where dalify is.

    Raises:
        ArgumentValueError: there is no dataset; or it cannot be accelerated, and ``DATALOADER_FALLBACK_EN`` is false.

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
                hint=f"{report.hint} {_VARIABLE}=true lets torch's own loader stand in.".lstrip(),
            )
        self.fallback_reason = report.reason
        if self.on_fallback == "warn":
            self.on_fallback = "silent"  # one message is enough
        _log.warning(
            "Failed to initialize Habana Dataloader, error: %s\nRunning with PyTorch Dataloader", report.reason
        )

    def explain(self) -> LoaderReport:
        """Tell what runs where."""
        report = super().explain()
        if not has_boxes(self.dataset) or report.code == _ASKED_FOR:
            return report
        try:
            source = self._ssd_source()
        except NotRecognisedError as error:
            return replace(report, reason=error.reason, hint=error.hint)
        names = " → ".join(source.plan.names)
        return LoaderReport("full", (f"{source.description}: {names} by dalify, boxes by the program's own encoder",))

    def _ssd_source(self) -> SsdSource:
        """Recognise COCO with SSD's transforms; tried out once for each dataset and transform.

        Raises:
            NotRecognisedError: something is not known, or comes out otherwise.
        """
        if not self._auto_collation or self.worker_init_fn is not None or (self.timeout and not self.num_workers):
            raise NotRecognisedError("batch_size is None, worker_init_fn is given, or timeout is without workers")
        check_settings()
        dataset: Any = self.dataset
        source = SsdSource(dataset)
        tried_dataset, tried_transform = self._tried or (None, None)
        if tried_dataset is not dataset or tried_transform is not dataset.transform:
            try_out(source)
            self._tried = dataset, dataset.transform
        return source

    def _get_iterator(self) -> Any:
        if not has_boxes(self.dataset) or self.fallback_reason is not None:
            return super()._get_iterator()
        is_default = self.collate_fn is torch.utils.data.default_collate
        fetcher = SsdFetcher(self._ssd_source(), None if is_default else self.collate_fn)
        return ThreadIterator(self, fetcher) if self.num_workers else CallerIterator(self, fetcher, FasterDataset)

    @property
    def accelerated(self) -> bool:
        """Whether dalify makes the batches."""
        return self.fallback_reason is None
