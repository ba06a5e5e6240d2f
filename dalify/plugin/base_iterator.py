"""DALI's import path of ``LastBatchPolicy``."""

from dalify.plugin.epochs import LastBatchPolicy

__all__ = ["LastBatchPolicy"]
