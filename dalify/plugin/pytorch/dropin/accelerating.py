"""``accelerate`` converts existing loaders, created by a framework or by other code."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch.utils.data

from dalify.base.errors import ArgumentTypeError, NotAcceleratedError
from dalify.plugin.pytorch.dropin.hybrid import SubstituteLoader
from dalify.plugin.pytorch.dropin.loader import TORCH_ITERATOR, Accelerated, DataLoader, make_iterator

_TorchLoader = torch.utils.data.DataLoader


def accelerate(loader: Any) -> Any:
    """Return a loader with the same batches, which dalify computes if it supports dataset and transforms.

    Loaders prepared by Hugging Face Accelerate are changed in place, because Accelerate keeps references to them. Call
    ``accelerate`` after ``accelerator.prepare``, which creates new loaders.

    Args:
        loader: a ``torch.utils.data.DataLoader``, an instance of a subclass, or a loader prepared by Accelerate.

    Returns:
        A loader with the same dataset, samplers, generators and workers, of a subclass of the class of `loader`.
        `loader` itself if it is one of dalify, or prepared by Accelerate.

    Raises:
        ArgumentTypeError: `loader` is not a loader of torch.
        NotAcceleratedError: its class overrides the creation of iterators.

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
    accelerated = object.__new__(DataLoader if type(loader) is _TorchLoader else _accelerated_class(type(loader)))
    accelerated.__dict__.update(loader.__dict__, _iterator=None)  # the state of torch's class and of subclasses
    return accelerated


@cache
def _accelerated_class(kind: type) -> type:
    return type(kind.__name__, (Accelerated, kind), {"__doc__": kind.__doc__, "__module__": kind.__module__})


def _get_iterator(self: Any) -> Any:
    return make_iterator(self) if type(self) is not SubstituteLoader else TORCH_ITERATOR(self)


def patch() -> None:
    """Let dalify compute the batches of all loaders of torch in this process, where it supports them.

    For frameworks that create loaders internally. Loaders that exist already are included. `unpatch` reverts it.
    """
    _TorchLoader._get_iterator = _get_iterator


def unpatch() -> None:
    """Revert `patch`: from their next epoch on, loaders of torch are used unchanged."""
    _TorchLoader._get_iterator = TORCH_ITERATOR
