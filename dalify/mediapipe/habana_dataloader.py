"""``HabanaDataLoader``: the call of torch's DataLoader, the messages of Gaudi's, and dalify behind it.

Alone because programs import it from here: ``import habana_dataloader`` becomes
``from dalify.mediapipe import habana_dataloader``.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.plugin.pytorch.dropin.loader import DataLoader

__all__ = ["HabanaDataLoader", "falls_back"]

_log = logging.getLogger("dalify.dataloader")
_VARIABLE = "DATALOADER_FALLBACK_EN"
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

    Gaudi's limits do not hold: any number of workers, any sampler (its order is kept), pin_memory, drop_last and
    collate_fn, and any parameters of the transforms. What cannot be accelerated, such as SSD's pairs of image and
    boxes, is done by torch's own loader, after the message that Gaudi's gives, in the log ``dalify.dataloader``.

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
        super().__init__(*args, **kwargs)
        if self.dataset is None:
            raise ArgumentValueError("'dataset' can not be None")
        report = self.explain()
        if report.is_accelerated:
            return
        if not falls_back():
            _log.error("Habana dataloader configuration failed: %s", report.reason)
            raise ArgumentValueError(
                f"this loader cannot be accelerated: {report.reason}.",
                hint=f"{report.hint or 'Change it'}, or set {_VARIABLE}=true to have torch's own loader.",
            )
        self.fallback_reason = report.reason
        self._was_told = True  # one message is enough
        _log.warning(
            "Failed to initialize Habana Dataloader, error: %s\nRunning with PyTorch Dataloader", report.reason
        )

    @property
    def accelerated(self) -> bool:
        """Whether dalify makes the batches."""
        return self.fallback_reason is None
