"""``LoaderEvaluator``: how long a training waits for its loader, and how fast it would be without waiting."""

from dalify.plugin.pytorch.loader_evaluator.loader import LoaderEvaluator

__all__ = ["LoaderEvaluator"]
