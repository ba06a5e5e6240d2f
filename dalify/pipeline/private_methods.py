"""Methods of DALI's pipeline that published loaders call although their names begin with ``_``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalify.base.deprecation import warn_deprecated

__all__ = ["PrivateMethods"]


class PrivateMethods:
    """Mixin with these methods."""

    if TYPE_CHECKING:  # defined by the classes that use the mixin

        def prepare(self) -> None:
            """Prefetch batches."""
            ...

        def schedule_run(self) -> None:
            """Schedule an iteration."""
            ...

        def share_outputs(self, cuda_stream: Any = None) -> Any:
            """Wait for the oldest scheduled iteration and return its outputs."""
            ...

        def release_outputs(self) -> None:
            """Release the outputs that ``share_outputs`` returned last."""
            ...

        def outputs(self, cuda_stream: Any = None) -> Any:
            """Return the outputs of the oldest scheduled iteration."""
            ...

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
