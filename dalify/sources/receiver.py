"""The interface between the worker processes of a pipeline and the owners of their tasks."""

from __future__ import annotations

from typing import Any, Protocol

from dalify.sources.worker_death import WorkerDeath
from dalify.sources.worker_process import TaskRunnerFactory

__all__ = ["Receiver"]


class Receiver(Protocol):
    """The owner of tasks of the workers."""

    def maker(self) -> TaskRunnerFactory:
        """Return the work for a worker process that is started now."""
        ...

    def is_wanted(self, token: Any) -> bool:
        """Return whether a pending task is still needed; otherwise it is dropped."""
        ...

    def receive(self, token: Any, outcome: Any) -> None:
        """Receive the outcome of a task.

        Args:
            token: the value passed to ``submit`` with the task.
            outcome: outcome of the task, see ``Result``.
        """
        ...

    def task_lost(self, token: Any, death: WorkerDeath) -> None:
        """Record that a task is lost because its worker died.

        Args:
            token: the value passed to ``submit`` with the task.
            death: how the worker died.
        """
        ...
