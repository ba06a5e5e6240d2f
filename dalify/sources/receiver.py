"""Whose tasks the worker processes of a pipeline do."""

from __future__ import annotations

from typing import Any, Protocol

from dalify.sources.worker_death import Death
from dalify.sources.worker_process import WorkMaker

__all__ = ["Receiver"]


class Receiver(Protocol):
    """Whose tasks the workers do."""

    def maker(self) -> WorkMaker:
        """Return what does its tasks in a worker process that is started now."""
        ...

    def is_wanted(self, token: Any) -> bool:
        """Tell whether a task that no worker has begun shall be done; otherwise it is forgotten."""
        ...

    def receive(self, token: Any, outcome: Any) -> None:
        """Take what became of a task.

        Args:
            token: what was given to ``submit`` with the task.
            outcome: of the task, see ``Result``.
        """
        ...

    def lose(self, token: Any, death: Death) -> None:
        """Take note that nothing will become of a task, since its worker died.

        Args:
            token: what was given to ``submit`` with the task.
            death: of the worker.
        """
        ...
