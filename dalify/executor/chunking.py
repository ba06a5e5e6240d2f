"""Divide a batch into chunks: long enough to amortize their share of Python, short enough to keep all threads busy."""

from __future__ import annotations

import math
from itertools import pairwise

__all__ = ["chunk_bounds", "is_brief"]

# A longer chunk hides no more Python, and keeps more scratch memory.
_MAX_CHUNK_SECONDS = 48e-3
# What one step costs a chunk, whatever its length, in Python and in waiting for the lock: threads run Python one at a
# time, and handing the lock over takes longer than most of what they do with it. Measured with 8 to 32 threads.
_PYTHON_SECONDS_PER_STEP = 200e-6
# With two chunks for each thread, a thread that ends early finds another one.
_CHUNKS_PER_THREAD = 2
# Submitting a task and waking a thread takes some 30 microseconds of both threads, which hold the interpreter's lock.
_BRIEF_SECONDS = 300e-6


def chunk_bounds(
    size: int, seconds_per_sample: float | None, num_threads: int, scheduled: int = 1, steps: int = 1
) -> list[tuple[int, int]]:
    """Return the index of the first sample and the index after the last one of each chunk.

    Args:
        size: samples in the batch, at least 1.
        seconds_per_sample: measured on the batches before; None for the first one.
        num_threads: threads that share the chunks.
        scheduled: batches that are being computed at the same time, this one included.
        steps: steps that each chunk passes through.
    """
    if seconds_per_sample is None:
        count = min(size, 4 * num_threads)
    elif num_threads == 1:
        count = math.ceil(size * seconds_per_sample / _MAX_CHUNK_SECONDS)
    else:
        work = scheduled * size * seconds_per_sample
        # Chunks of this length keep all threads busy.
        longest = work / (_CHUNKS_PER_THREAD * num_threads)
        # With n chunks at a time, at most n threads work, and all of them wait for n times the Python of a chunk. Below
        # this length, the threads that more chunks would employ wait for the interpreter's lock instead.
        shortest = math.sqrt(work * steps * _PYTHON_SECONDS_PER_STEP)
        seconds = min(max(longest, shortest), _MAX_CHUNK_SECONDS)
        count = round(size * seconds_per_sample / seconds) if seconds else 1
    count = max(1, min(size, count))
    return list(pairwise(size * index // count for index in range(count + 1)))


def is_brief(size: int, seconds_per_sample: float | None) -> bool:
    """Return whether a stage takes less time than handing it over to another thread."""
    return seconds_per_sample is not None and size * seconds_per_sample < _BRIEF_SECONDS
