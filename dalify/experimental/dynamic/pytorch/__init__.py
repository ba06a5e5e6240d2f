"""Dynamic mode with PyTorch: ``ndd.pytorch.nodes``, which needs ``torchdata``."""

from typing import TYPE_CHECKING

from dalify.base.optional import LazyModule

if TYPE_CHECKING:
    from dalify.experimental.dynamic.pytorch import nodes
else:
    # It needs an optional package.
    nodes = LazyModule("dalify.experimental.dynamic.pytorch.nodes", "ndd.pytorch.nodes", "torchdata")

__all__ = ["nodes"]
