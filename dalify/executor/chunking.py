"""How a batch is cut into chunks: long enough to be worth handing over, short enough to keep all threads busy."""

from __future__ import annotations

from itertools import pairwise

__all__ = ["chunk_bounds", "is_brief"]

# How long a chunk should take: long against its share of Python and of handing it over, short against a batch.
_CHUNK_SECONDS = 12e-3
# Handing work to another thread and waking it takes some 30 microseconds of both, and then they want Python in turns.
_BRIEF_SECONDS = 300e-6


def chunk_bounds(size: int, seconds_per_sample: float | None, num_threads: int) -> list[tuple[int, int]]:
    """Return first and last-but-one sample of each chunk.

    Args:
        size: samples in the batch, at least 1.
        seconds_per_sample: measured on the batches before; None for the first one.
        num_threads: threads that share the chunks.
    """
    if seconds_per_sample is None:
        count = min(size, 4 * num_threads)
    else:
        count = max(1, round(size * seconds_per_sample / _CHUNK_SECONDS))
        if count < 2 * num_threads:
            # Too little for chunks of full length: as many as there are threads, if it is worth waking them.
            count = num_threads if size * seconds_per_sample > _CHUNK_SECONDS / 2 else 1
        count = min(size, count)
    return list(pairwise(size * index // count for index in range(count + 1)))


def is_brief(size: int, seconds_per_sample: float | None) -> bool:
    """Tell whether a stage takes so little time that the thread that could hand it over does better to run it."""
    return seconds_per_sample is not None and size * seconds_per_sample < _BRIEF_SECONDS
