"""Methods of DALI's pipeline that published loaders call, though their names begin with ``_``.

Alone because nothing in dalify uses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalify.base.deprecation import warn_deprecated

if TYPE_CHECKING:
    from dalify.base.fork_lock import ForkLock

__all__ = ["PrivateMethods"]


class PrivateMethods:
    """The part of a pipeline that has these methods."""

    _lock: ForkLock

    def prepare(self) -> None:
        """Begin batches ahead."""
        raise AssertionError("dalify bug: a pipeline that cannot begin")

    def schedule_run(self) -> None:
        """Begin an iteration."""
        raise AssertionError("dalify bug: a pipeline that cannot begin")

    def share_outputs(self, cuda_stream: Any = None) -> Any:
        """Wait for the oldest scheduled iteration and return its outputs."""
        raise AssertionError("dalify bug: a pipeline without outputs")

    def release_outputs(self) -> None:
        """Let go of what ``share_outputs`` returned last."""
        raise AssertionError("dalify bug: a pipeline without outputs")

    def outputs(self, cuda_stream: Any = None) -> Any:
        """Return the outputs of the oldest scheduled iteration."""
        raise AssertionError("dalify bug: a pipeline without outputs")

    def _prefetch(self) -> None:
        self.prepare()

    def _run_once(self) -> None:
        self.schedule_run()

    def _run(self) -> None:
        warn_deprecated("Pipeline._run() is now called schedule_run().")
        self.schedule_run()

    def _share_outputs(self) -> Any:
        warn_deprecated("Pipeline._share_outputs() is now called share_outputs().")
        return self.share_outputs()

    def _release_outputs(self) -> None:
        warn_deprecated("Pipeline._release_outputs() is now called release_outputs().")
        self.release_outputs()

    def _outputs(self, cuda_stream: Any = None) -> Any:
        return self.outputs(cuda_stream)
