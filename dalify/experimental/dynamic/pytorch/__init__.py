"""Dynamic mode together with PyTorch: ``ndd.pytorch.nodes``, which needs ``torchdata``."""

from typing import TYPE_CHECKING

from dalify.base.optional import LazyModule

if TYPE_CHECKING:
    from dalify.experimental.dynamic.pytorch import nodes
else:
    # It needs a package that few programs have.
    nodes = LazyModule("dalify.experimental.dynamic.pytorch.nodes", "ndd.pytorch.nodes", "torchdata")

__all__ = ["nodes"]
