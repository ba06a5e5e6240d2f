"""When calls are computed: ``with ndd.EvalMode.deferred: …``."""

from __future__ import annotations

from enum import Enum

from dalify.base.context_stack import ContextStack

__all__ = ["EvalMode"]

_blocks: ContextStack[EvalMode] = ContextStack()


class EvalMode(Enum):
    """When the operators of dynamic mode compute; a ``with`` block sets the mode of its thread.

    Attributes:
        deferred: when a result is accessed. Unused results are not computed. Errors that need data are raised then,
            and name the line of the call.
        eager: before the call returns. DALI computes such calls in another thread.
        sync_cpu: like eager.
        sync_full: before the call returns, including work on the accelerator.
        default: eager.
    """

    deferred = 1
    eager = 2
    sync_cpu = 3
    sync_full = 4
    default = 2

    @staticmethod
    def current() -> EvalMode:
        """Return the mode of this thread."""
        return _blocks.innermost or EvalMode.eager

    def __enter__(self) -> EvalMode:
        """Make this the mode of the thread."""
        _blocks.chosen.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the previous mode."""
        _blocks.chosen.pop()
