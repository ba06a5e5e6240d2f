"""The experimental part of DALI's PyTorch plugin: a pipeline as the transform of a torch dataset."""

from dalify.plugin.pytorch.experimental import proxy

__all__ = ["proxy"]
