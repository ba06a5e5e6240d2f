"""``HabanaDataLoader``: the interface of torch's DataLoader and the log messages of Gaudi's loader, computed by dalify.

Replace ``import habana_dataloader`` by ``from dalify.mediapipe import habana_dataloader``.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.plugin.pytorch import SsdDataLoader

_log = logging.getLogger("dalify.dataloader")
_VARIABLE = "DATALOADER_FALLBACK_EN"
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


class HabanaDataLoader(SsdDataLoader):
    """A loader with the interface and batches of torch's DataLoader; see ``dalify.plugin.pytorch.DataLoader``.

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
        super().__init__(*args, **kwargs)
        if self.dataset is None:
            raise ArgumentValueError.here("'dataset' can not be None")
        report = self.explain()
        if report.is_accelerated:
            return
        if not falls_back():
            _log.error("Habana dataloader configuration failed: %s", report.reason)
            raise ArgumentValueError.here(
                f"this loader cannot be accelerated: {report.reason}.",
                hint=f"{report.hint} Set {_VARIABLE}=true to fall back to torch's loader.".lstrip(),
            )
        self.fallback_reason = report.reason
        if self.on_fallback == "warn":
            self.on_fallback = "silent"  # one message is enough
        _log.warning(
            "Failed to initialize Habana Dataloader, error: %s\nRunning with PyTorch Dataloader", report.reason
        )

    @property
    def accelerated(self) -> bool:
        """Whether dalify produces the batches."""
        return self.fallback_reason is None
