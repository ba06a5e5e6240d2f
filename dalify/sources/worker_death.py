"""The end of a worker process, and the error for the batch that was lost."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import NamedTuple

from dalify.base.errors import WorkerError
from dalify.base.source_line import SourceLine


class WorkerDeath(NamedTuple):
    """The end of a worker process.

    Attributes:
        process_id: process id of the worker.
        code: exit code, or the negative number of a signal; None if other code in this program reaped the process.
        call: index of the call in the task, -1 before the first one; None if the worker was not ready yet.
        timeout_s: time limit that a call exceeded; None for another reason.
        reason: why no worker could compute the task; "" if one died.
    """

    process_id: int
    code: int | None
    call: int | None
    timeout_s: float | None = None
    reason: str = ""

    def error(self, subject: str, request: str, line: SourceLine | None, operator: str) -> WorkerError:
        """Return the error for the task of the worker.

        Args:
            subject: owner of the called code, such as ``the source load()``.
            request: description of the request, such as ``batch 7 of epoch 0``.
            line: location of the user's code.
            operator: public name of the operator.
        """
        process = f"a worker process (pid {self.process_id})"
        if self.reason:
            text = f"{request} is lost: {self.reason}."
            hint = "The next batch is attempted again."
        elif self.call is None:
            text = f"{request} is lost: {process} {self._end()} before it was ready."
            hint = (
                "The message of the process is on stderr. With py_start_method='spawn' or 'forkserver', each worker "
                "imports the program's main module: put its code under if __name__ == '__main__':."
            )
        elif self.timeout_s is not None:
            text = (
                f"{subject} took longer than callback_timeout_s={self.timeout_s:g} for {request}; its worker process "
                f"(pid {self.process_id}) was killed and is replaced."
            )
            hint = (
                "Check what the callback waits for, or increase callback_timeout_s. The next run() returns the next "
                "batch."
            )
        else:
            text = f"{process} {self._end()} in {subject}, called for {request}; it is replaced."
            hint = (
                "Check for a crash in this code, or for a system that ran out of memory. The next run() returns the "
                "next batch."
            )
        return WorkerError(text, line=line, hint=hint, operator=operator)

    def _end(self) -> str:
        if self.code is None:
            return "ended with an unknown exit code, because other code in this program has reaped it"
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        name = ""
        with suppress(ValueError):  # a realtime signal
            name = f" ({signal.Signals(-self.code).name})"
        return f"was ended by signal {-self.code}{name}"
