"""The random number generator of immediate calls: a seed and the number of random calls.

Every random call takes the next number, like every batch of a pipeline. So two calls never draw the same random
numbers, also in different threads.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from typing import Any, SupportsIndex

from dalify.base.errors import ArgumentTypeError, CheckpointError
from dalify.base.fork_hook import at_fork
from dalify.base.fork_lock import ForkLock
from dalify.base.narrow import is_integer

STREAM = zlib.crc32(b"eager")  # no operator of a pipeline has this stream

_KEYS = ("seed", "calls", "forks")
_LARGEST = 1 << 63


class Generator:
    """A seed and the number of random calls.

    Attributes:
        seed: seed of all random numbers.
        calls: number of random calls.
        forks: number of forked children; each continues with its own seed.
    """

    def __init__(self) -> None:
        self.seed = int.from_bytes(os.urandom(8)) >> 1
        self.calls = 0
        self.forks = 0
        self._lock = ForkLock()

    def next_call(self) -> tuple[int, int]:
        """Return the seed and the number of this call."""
        with self._lock:
            number = self.calls
            self.calls += 1
            return self.seed, number

    def restart(self, seed: int, calls: int = 0, forks: int = 0) -> None:
        """Set the state."""
        with self._lock:
            self.seed, self.calls, self.forks = seed, calls, forks

    def before_fork(self) -> None:
        """Count the child that is about to be forked."""
        with self._lock:
            self.forks += 1

    def begin_child(self) -> None:
        """Derive a seed for the child from the state of the parent, so that runs are reproducible."""
        text = f"{self.seed} {self.calls} {self.forks}".encode()
        self.seed = zlib.crc32(text) << 31 ^ zlib.crc32(text[::-1])
        self.calls = self.forks = 0


GENERATOR = Generator()

at_fork(GENERATOR.begin_child, before=GENERATOR.before_fork)


def seed(value: int, /) -> None:
    """Reset the random number generator of immediate calls.

    Args:
        value: the seed. With the same seed, the same sequence of calls draws the same random numbers.

    Raises:
        ArgumentTypeError: not an integer.

    Example:
        >>> eager.seed(7)
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise ArgumentTypeError.here(f"a seed must be an integer; got {value!r}.")
    GENERATOR.restart(int(value))


def get_state() -> dict[str, int]:
    """Return the state of the random number generator of immediate calls, as JSON data."""
    return {name: getattr(GENERATOR, name) for name in _KEYS}


def set_state(state: Mapping[str, Any], /) -> None:
    """Restore a state of ``get_state``.

    Raises:
        CheckpointError: not a state of the generator.
    """
    is_mapping = isinstance(state, Mapping) and set(state) == set(_KEYS)
    if not is_mapping or not all(map(is_integer, state.values())):
        raise CheckpointError.here(
            f"{state!r} is not a state of the random number generator of immediate calls.",
            hint="Pass the result of eager.get_state().",
        )
    if not (0 <= state["calls"] < _LARGEST and 0 <= state["forks"] < _LARGEST):
        raise CheckpointError.here("the state is damaged: a count is out of range.")
    GENERATOR.restart(*(state[name] for name in _KEYS))
