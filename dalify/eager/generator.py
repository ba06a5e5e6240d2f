"""Where the random numbers of immediate calls come from: a seed, and how many calls have drawn.

Alone because it is the only state of this room. Every drawing call takes the next number, as every batch of a
pipeline does, so no two calls get the same numbers, in whatever threads they are made.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Mapping
from typing import Any, SupportsIndex

from dalify.base.errors import ArgumentTypeError, CheckpointError
from dalify.base.source_line import SourceLine

__all__ = ["GENERATOR", "STREAM", "Generator", "get_state", "seed", "set_state"]

STREAM = zlib.crc32(b"eager")  # no operator of a pipeline has this number

_KEYS = ("seed", "calls", "forks")
_LARGEST = 1 << 63


class Generator:
    """A seed and the number of calls that have drawn from it.

    Attributes:
        seed: decides all numbers.
        calls: how many calls have drawn.
        forks: how many child processes this one has had: each continues with a seed of its own.
    """

    def __init__(self) -> None:
        self.seed = int.from_bytes(os.urandom(8)) >> 1
        self.calls = 0
        self.forks = 0
        self._lock = threading.Lock()

    def next_call(self) -> tuple[int, int]:
        """Return the seed and the number of this call."""
        with self._lock:
            number = self.calls
            self.calls += 1
            return self.seed, number

    def restart(self, seed: int, calls: int = 0, forks: int = 0) -> None:
        """Continue elsewhere."""
        with self._lock:
            self.seed, self.calls, self.forks = seed, calls, forks

    def before_fork(self) -> None:
        """Count the child that is about to be made."""
        self._lock.acquire()
        self.forks += 1

    def after_fork(self) -> None:
        """Go on in the parent."""
        self._lock.release()

    def begin_child(self) -> None:
        """Take a seed of the child's own, which depends on the parent's state alone: runs can be repeated."""
        self._lock = threading.Lock()
        text = f"{self.seed} {self.calls} {self.forks}".encode()
        self.seed = zlib.crc32(text) << 31 ^ zlib.crc32(text[::-1])
        self.calls = self.forks = 0


GENERATOR = Generator()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=GENERATOR.before_fork,
        after_in_parent=GENERATOR.after_fork,
        after_in_child=GENERATOR.begin_child,
    )


def seed(value: int, /) -> None:
    """Begin the random numbers of immediate calls anew.

    Args:
        value: the same one gives the same numbers to the same calls in the same order.

    Raises:
        ArgumentTypeError: not an integer.

    Example:
        >>> eager.seed(7)
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise ArgumentTypeError(f"a seed must be an integer; got {value!r}.", line=SourceLine.capture())
    GENERATOR.restart(int(value))


def get_state() -> dict[str, int]:
    """Return where the random numbers of immediate calls stand, as plain numbers that JSON can hold."""
    return {name: getattr(GENERATOR, name) for name in _KEYS}


def set_state(state: Mapping[str, Any], /) -> None:
    """Continue where ``get_state`` was called.

    Raises:
        CheckpointError: this is no state of it.
    """
    is_mapping = isinstance(state, Mapping) and set(state) == set(_KEYS)
    if not is_mapping or any(isinstance(item, bool) or not isinstance(item, int) for item in state.values()):
        raise CheckpointError(
            f"{state!r} is no state of the random numbers of immediate calls.",
            line=SourceLine.capture(),
            hint="Give what eager.get_state() returned.",
        )
    if not (0 <= state["calls"] < _LARGEST and 0 <= state["forks"] < _LARGEST):
        raise CheckpointError("this state is damaged: a count is out of range.", line=SourceLine.capture())
    GENERATOR.restart(*(state[name] for name in _KEYS))
