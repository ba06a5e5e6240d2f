"""Functions that are called at a fork, and the process that owns threads, locks and files."""

from __future__ import annotations

import os
from collections.abc import Callable


class Owner:
    """The process that created an object with threads, processes or open files.

    A fork copies the object without its threads; files and processes are shared with the parent.
    """

    __slots__ = ("_process_id",)

    def __init__(self) -> None:
        self._process_id = os.getpid()

    @property
    def is_this_process(self) -> bool:
        """Whether this process is the owner; False in a fork of it."""
        return self._process_id == os.getpid()

    def take_over(self) -> bool:
        """Make this process the owner; return whether the owner was another process."""
        process_id = os.getpid()
        was_other = self._process_id != process_id
        self._process_id = process_id
        return was_other


def at_fork(
    in_child: Callable[[], object],
    *,
    before: Callable[[], object] | None = None,
    in_parent: Callable[[], object] | None = None,
) -> None:
    """Call functions whenever this process is forked; does nothing on systems without fork.

    Args:
        in_child: called in the forked process, in the order of registration.
        before: called before the fork, in reverse order.
        in_parent: called in this process after the fork, in the order of registration.
    """
    if not hasattr(os, "register_at_fork"):  # Windows
        return
    os.register_at_fork(after_in_child=in_child)
    if before is not None:
        os.register_at_fork(before=before)
    if in_parent is not None:
        os.register_at_fork(after_in_parent=in_parent)
