"""``accelerate``: convert existing loaders, created by a framework or by other code."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch.utils.data

from dalify.base.errors import ArgumentTypeError, NotAcceleratedError
from dalify.plugin.pytorch.dropin.hybrid import ExchangedLoader
from dalify.plugin.pytorch.dropin.loader import TORCH_ITERATOR, Accelerated, DataLoader, make_iterator

__all__ = ["accelerate", "patch", "unpatch"]

_TorchLoader = torch.utils.data.DataLoader


def accelerate(loader: Any) -> Any:
    """Let dalify make the batches of a loader of torch's, as far as it can: the same batches.

    Loaders that Hugging Face Accelerate has prepared are changed in place, because Accelerate keeps track of them: it
    builds loaders of its own, so ``accelerator.prepare`` undoes what was done before.

    Args:
        loader: a ``torch.utils.data.DataLoader``, of a class derived from it, or prepared by Accelerate.

    Returns:
        A loader of the same dataset, samplers, generators and workers, with what the class of `loader` adds; `loader`
        itself where it is one of dalify's already, or prepared by Accelerate.

    Raises:
        ArgumentTypeError: it is no loader of torch's.
        NotAcceleratedError: its class makes iterators in a way of its own.

    Example:
        >>> from dalify.plugin.pytorch import accelerate
        >>> loader = accelerate(torch.utils.data.DataLoader(dataset, batch_size=2))
        >>> loader.explain().mode
        'full'
    """
    if hasattr(loader, "base_dataloader"):
        loader.base_dataloader = accelerate(loader.base_dataloader)
        return loader
    if not isinstance(loader, _TorchLoader):
        raise ArgumentTypeError(
            f"accelerate requires a torch.utils.data.DataLoader; got {type(loader).__name__}.",
            hint="Use accelerate(DataLoader(dataset, ...)).",
        )
    if isinstance(loader, Accelerated):
        return loader
    if type(loader)._get_iterator is not _TorchLoader._get_iterator:
        raise NotAcceleratedError(
            f"{type(loader).__name__} overrides the creation of iterators.",
            hint="Use the DataLoader of torch or of dalify instead.",
        )
    twin = object.__new__(DataLoader if type(loader) is _TorchLoader else _accelerated_class(type(loader)))
    twin.__dict__.update(loader.__dict__, _iterator=None)  # all that torch and its heirs know of a loader
    return twin


@cache
def _accelerated_class(kind: type) -> type:
    return type(kind.__name__, (Accelerated, kind), {"__doc__": kind.__doc__, "__module__": kind.__module__})


def _get_iterator(self: Any) -> Any:
    return make_iterator(self) if type(self) is not ExchangedLoader else TORCH_ITERATOR(self)


def patch() -> None:
    """Let dalify make the batches of every loader of torch's in this process, as far as it can.

    For frameworks that make loaders out of reach; also those that exist already take part. `unpatch` ends it.
    """
    _TorchLoader._get_iterator = _get_iterator


def unpatch() -> None:
    """End what `patch` began: loaders of torch's are torch's again, from their next pass on."""
    _TorchLoader._get_iterator = TORCH_ITERATOR
