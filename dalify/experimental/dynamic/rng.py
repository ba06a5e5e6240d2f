"""Random numbers of dynamic mode: ``ndd.random.RNG`` and the generator of each thread.

A generator is a seed and a position: Philox4x32-10 computes the number at any position, so states are short and
skipping numbers takes constant time. Integers and states equal those of DALI's generator; each random call advances it
by as many positions as in DALI.
"""

from __future__ import annotations

import os
import re
import threading
from typing import Any, SupportsIndex

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, CheckpointError
from dalify.base.fork_hook import at_fork
from dalify.base.fork_lock import ForkLock
from dalify.experimental.dynamic.states import StateString

_MASK_32 = (1 << 32) - 1
_MASK_64 = (1 << 64) - 1
_POSITIONS = 1 << 130  # four words for each value of a counter of 128 bits
_POSITIONS_PER_CALL = 7
_STATE = re.compile(r"Philox_([0-9A-F]{16})_([0-9A-F]{16}):([0-9A-F]{16})_([0-3])")
_local = threading.local()


class RNGState(StateString):
    """State of a generator; a generator can be created from its string."""

    __slots__ = ()


class RNG:
    """A generator of random numbers for operators: ``ndd.random.uniform(rng=rng)``.

    Args:
        seed: determines all numbers, modulo 2**64; random by default.
        state: start at this state instead of a seed.

    Raises:
        ArgumentValueError: both seed and state were specified.
        CheckpointError: the value is not a state of a generator.

    Example:
        >>> rng = ndd.random.RNG(seed=7)
        >>> rng(), rng.clone()() == rng()
        (4099963437, True)
    """

    def __init__(self, seed: SupportsIndex | None = None, state: RNGState | str | None = None) -> None:
        if seed is not None and state is not None:
            raise ArgumentValueError.here("specify either a seed or a state, not both.")
        self._seed = int.from_bytes(os.urandom(8)) if seed is None else _checked_seed(seed)
        self._position = 0
        self._lock = ForkLock()
        if state is not None:
            self.set_state(state)

    def __call__(self) -> int:
        """Return the next integer, 0 to 2**32 - 1."""
        with self._lock:
            position = self._position
            self._position = (position + 1) % _POSITIONS
        return _word(self._seed, position)

    def advance(self, n: SupportsIndex) -> None:
        """Skip ``n`` integers.

        Raises:
            ArgumentValueError: ``n`` is negative.
        """
        count = int(n)
        if count < 0:
            raise ArgumentValueError.here(f"a generator cannot go backwards; got {count}.")
        with self._lock:
            self._position = (self._position + count) % _POSITIONS

    def next_call(self) -> tuple[int, int]:
        """Return the seed and the position for the next call of an operator, and advance."""
        with self._lock:
            position = self._position
            self._position = (position + _POSITIONS_PER_CALL) % _POSITIONS
            return self._seed, position & _MASK_64

    def clone(self) -> RNG:
        """Return a generator that continues with the same numbers."""
        return RNG(state=self.state)

    @property
    def state(self) -> RNGState:
        """Position of the generator; it can be assigned."""
        counter, phase = divmod(self._position, 4)
        return RNGState(f"Philox_{self._seed:016X}_{counter >> 64:016X}:{counter & _MASK_64:016X}_{phase}")

    @state.setter
    def state(self, value: RNGState | str) -> None:
        self.set_state(value)

    def _set_seed(self, seed: SupportsIndex) -> None:
        with self._lock:
            self._seed, self._position = _checked_seed(seed), 0

    seed = property(None, _set_seed, doc="Restarts the generator with a seed; write-only.")

    def get_state(self, *, cuda_stream: Any = None) -> RNGState:
        """Return the position of the generator.

        Args:
            cuda_stream: accepted but ignored, as in readers.
        """
        return self.state

    def set_state(self, value: RNGState | str) -> None:
        """Continue at a result of ``get_state``.

        Raises:
            CheckpointError: the value is not a state of a generator.
        """
        found = _STATE.fullmatch(str(value))
        if found is None:
            raise CheckpointError.here(
                f"{value!r} is not a state of a generator.", hint="Pass the result of rng.get_state(), or its string."
            )
        seed, high, low, phase = (int(digits, 16) for digits in found.groups())
        with self._lock:
            self._seed, self._position = seed, ((high << 64) | low) * 4 + phase

    def reseed_child(self) -> None:
        """Use different numbers in a child process; they depend only on the state of the parent."""
        self._seed ^= _word(self._seed, self._position) << 32 | _word(self._seed, self._position + 1) | 1

    def __repr__(self) -> str:
        return f"RNG(state={str(self.state)!r})"


def _checked_seed(seed: SupportsIndex) -> int:
    if isinstance(seed, bool) or not isinstance(seed, SupportsIndex):
        raise ArgumentTypeError.here(f"a seed must be an integer; got {seed!r}.")
    return int(seed) & _MASK_64


def _word(seed: int, position: int) -> int:
    """Return the 32-bit word at a position: one of the four that Philox4x32-10 computes from a counter."""
    counter, phase = divmod(position, 4)
    c0, c1, c2, c3 = (counter >> shift & _MASK_32 for shift in (0, 32, 64, 96))
    k0, k1 = seed & _MASK_32, seed >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & _MASK_32, p0 >> 32 ^ c3 ^ k1, p0 & _MASK_32
        k0, k1 = k0 + 0x9E3779B9 & _MASK_32, k1 + 0xBB67AE85 & _MASK_32
    return (c0, c1, c2, c3)[phase]


def get_default_rng() -> RNG:
    """Return the generator of this thread, from which calls without ``rng=`` draw."""
    found = getattr(_local, "rng", None)
    if found is None:
        found = _local.rng = RNG()
    return found


def set_seed(seed: SupportsIndex) -> None:
    """Reset the random numbers of calls without ``rng=`` in this thread.

    Args:
        seed: equal seeds give equal numbers for the same calls in the same order.

    Raises:
        ArgumentTypeError: not an integer.
    """
    get_default_rng().seed = seed


def _reseed_child() -> None:
    found = getattr(_local, "rng", None)
    if found is not None:
        found.reseed_child()


at_fork(_reseed_child)
