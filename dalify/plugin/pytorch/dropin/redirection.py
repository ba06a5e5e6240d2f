"""Let torchvision's own transforms draw from a worker's generator, in whatever thread they run.

They ask torch for random numbers without naming a generator, and so get those of the process, which threads share. A
mode of torch, which counts for one thread only, names the generator in each such call.
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


class _NamedGenerator(TorchFunctionMode):
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
    """Within the context, in this thread, torch's functions draw from a generator instead of the process's."""
    return nullcontext() if generator is torch.default_generator else _NamedGenerator(generator)
