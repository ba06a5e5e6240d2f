"""Redirect the random numbers of torchvision's transforms to the generator of a worker.

The transforms call torch's random functions without a generator, which then draw from the default generator, shared by
all threads. A ``TorchFunctionMode``, which is local to a thread, adds the generator to these calls.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["drawing_from"]

_DRAWING = frozenset(
    {
        torch.multinomial,
        torch.rand,
        torch.randint,
        torch.randperm,
        torch._sample_dirichlet,  # pyright: ignore[reportPrivateImportUsage]  # torchvision's AugMix calls it
        torch.Tensor.normal_,
        torch.Tensor.uniform_,
    }
)


class _GeneratorMode(TorchFunctionMode):
    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self._generator = generator

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _DRAWING:
            return func(*args, **(kwargs or {}), generator=self._generator)
        return func(*args, **(kwargs or {}))


def drawing_from(generator: torch.Generator) -> AbstractContextManager[Any]:
    """Return a context in which torch's functions draw from a generator, in this thread."""
    return nullcontext() if generator is torch.default_generator else _GeneratorMode(generator)
