"""Samplers of readers: ``fn.readers.file(..., sampler=samplers.ClassBalanced())``."""

from dalify.sources.selection import ClassBalanced, Mixture, Subset, Weighted

__all__ = ["ClassBalanced", "Mixture", "Subset", "Weighted"]
