"""Computes the next words of a Mersenne Twister MT19937 state, without advancing its generator.

NumPy also implements the algorithm, but creating a generator and setting its state takes forty times as long as
computing the words of a batch. Algorithm: Matsumoto and Nishimura, 1998.
"""

from __future__ import annotations

import numpy as np
from numba import uint32

from dalify.base.compiling import njit

STATE_WORDS = 624
_MIDDLE = 397


@njit(nogil=True, cache=True)
def following_words(state, position, count):
    """Return the next words of a state.

    Args:
        state: uint32 ``[624]``; not modified.
        position: index of the next word in it; 624 if the state is exhausted.
        count: number of words.

    Returns:
        uint32 ``[count]``.
    """
    state = state.copy()
    found = np.empty(count, np.uint32)
    for number in range(count):
        if position == STATE_WORDS:
            for i in range(STATE_WORDS):
                bits = (state[i] & uint32(0x80000000)) | (state[(i + 1) % STATE_WORDS] & uint32(0x7FFFFFFF))
                twist = uint32(0x9908B0DF) if bits & uint32(1) else uint32(0)
                state[i] = state[(i + _MIDDLE) % STATE_WORDS] ^ (bits >> uint32(1)) ^ twist
            position = 0
        word = state[position]
        position += 1
        word ^= word >> uint32(11)
        word ^= (word << uint32(7)) & uint32(0x9D2C5680)
        word ^= (word << uint32(15)) & uint32(0xEFC60000)
        found[number] = word ^ (word >> uint32(18))
    return found
