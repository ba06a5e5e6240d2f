"""``LoaderEvaluator`` measures the time that training waits for its loader, and its speed without waiting."""

from dalify.plugin.pytorch.loader_evaluator.loader import LoaderEvaluator

__all__ = ["LoaderEvaluator"]
