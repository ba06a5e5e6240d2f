"""Divides a batch into chunks: long enough to amortize the Python code, short enough to keep all threads busy."""

from __future__ import annotations

import math
from itertools import pairwise

# Longer chunks need more scratch memory, and run slower with several threads. 64 photographs take 50 to 70 ms.
_MAX_CHUNK_SECONDS = 72e-3
# Time of a step per chunk in Python code and in waiting for the GIL, independent of the length of the chunk. Acquiring
# the GIL takes longer than most of this code. Measured with 8 to 32 threads.
_PYTHON_SECONDS_PER_STEP = 200e-6
# Maximum number of chunks of a batch before times are measured. With more, many threads would wait for the GIL.
_FIRST_CHUNKS = 16
# With two chunks per thread, a thread that finishes early gets another one.
_CHUNKS_PER_THREAD = 2
# The part of the time in which all threads together may hold the GIL, if enough batches are in progress.
_GIL_FRACTION = 1 / 3
# The same limit for the number of threads. It is above 1, because the estimate above is too high: in a simulation of 64
# cores, more threads have no effect.
_MOST_GIL_FRACTION = 3 / 2
# Submitting a task and waking a thread takes about 30 microseconds of both threads, which hold the GIL.
_BRIEF_SECONDS = 300e-6
# Factor by which the minimum time per sample may grow from one measurement to the next.
_FORGETTING = 1.05


def chunk_bounds(
    size: int,
    seconds_per_sample: float | None,
    num_threads: int,
    scheduled: int = 1,
    steps: int = 1,
) -> list[tuple[int, int]]:
    """Return start and stop of each chunk, as indices of samples.

    Args:
        size: number of samples in the batch, at least 1.
        seconds_per_sample: time measured in previous batches, without waiting for the GIL; None for the first one.
        num_threads: number of threads that share the chunks.
        scheduled: number of batches that are computed at the same time, including this one.
        steps: number of steps per chunk.
    """
    if seconds_per_sample is None:
        count = min(size, 4 * num_threads, _FIRST_CHUNKS)
    else:
        batch_seconds = size * seconds_per_sample
        count = math.ceil(batch_seconds / _MAX_CHUNK_SECONDS)
        if num_threads > 1:
            work = scheduled * batch_seconds
            # Chunks of this length keep all threads busy.
            longest = work / (_CHUNKS_PER_THREAD * num_threads)
            # With n chunks at a time, at most n threads work, and each waits for n times the Python part of a chunk.
            # With shorter chunks, additional threads would wait for the GIL.
            shortest = math.sqrt(work * steps * _PYTHON_SECONDS_PER_STEP)
            seconds = min(max(longest, shortest), _MAX_CHUNK_SECONDS)
            count = round(batch_seconds / seconds) if seconds else 1
            if scheduled > 1:  # chunks of another batch occupy the threads at the end of this one
                # One chunk more than threads is sufficient; further ones cost CPU time.
                enough = math.ceil((_useful_threads(batch_seconds, num_threads, steps) + 1) / scheduled)
                count = min(count, max(enough, math.ceil(batch_seconds / _MAX_CHUNK_SECONDS)))
    count = max(1, min(size, count))
    return list(pairwise(size * index // count for index in range(count + 1)))


def _useful_threads(seconds: float, num_threads: int, steps: int) -> int:
    """Return the number of threads that can compute a batch each; more threads would wait for the GIL.

    Args:
        seconds: time of a batch, without waiting for the GIL.
        num_threads: number of threads that share the batches.
        steps: number of steps per chunk.
    """
    useful = math.ceil(seconds * _MOST_GIL_FRACTION / (steps * _PYTHON_SECONDS_PER_STEP))
    return max(1, min(num_threads, useful))


def _most_chunks(size: int, seconds_per_sample: float, num_threads: int, steps: int) -> int:
    """Return the maximum number of chunks with which threads rarely wait for the GIL; the time is CPU time."""
    seconds = size * seconds_per_sample
    wanted = seconds * _GIL_FRACTION / (num_threads * steps * _PYTHON_SECONDS_PER_STEP)
    # Two chunks per batch need half as many batches in progress, and half the memory. All threads together then hold
    # the GIL for up to twice `_GIL_FRACTION`, which is still less than 1.
    most = 2 if 1 <= wanted < 2 else int(wanted)
    return min(size, max(most, math.ceil(seconds / _MAX_CHUNK_SECONDS), 1))


def batches_for_threads(
    depth: int, size: int, seconds_per_sample: float, cpu_seconds_per_sample: float, num_threads: int, steps: int
) -> int:
    """Return the number of batches in progress that keeps all useful threads busy with long chunks, at least ``depth``.

    In a simulation of 32 cores, batches of 64 photographs are computed more than twice as fast if each thread computes
    its own batch. Batches for threads that would wait for the GIL need memory and are not faster.

    Args:
        depth: the depth that the user specified.
        size: number of samples in a batch.
        seconds_per_sample: measured time, without waiting for the GIL.
        cpu_seconds_per_sample: CPU time in ``seconds_per_sample``; 0 if unknown.
        num_threads: number of threads that share the batches.
        steps: number of steps per chunk.
    """
    if not cpu_seconds_per_sample:
        return depth
    threads = _useful_threads(size * seconds_per_sample, num_threads, steps)
    # One chunk for each thread, and one for a batch that is computed but not collected.
    chunks = threads + 1
    # One batch more is better than more chunks: two chunks of a batch instead of one cost 2 to 5 % of CPU time.
    fewest = max(math.ceil(chunks / (depth + 1)), math.ceil(size * seconds_per_sample / _MAX_CHUNK_SECONDS))
    per_batch = min(fewest, _most_chunks(size, cpu_seconds_per_sample, threads, steps))
    return max(depth, math.ceil(chunks / per_batch))


def is_brief(size: int, seconds_per_sample: float | None) -> bool:
    """Return whether a stage takes less time than starting it in another thread."""
    return seconds_per_sample is not None and size * seconds_per_sample < _BRIEF_SECONDS


def typical_seconds(known: float | None, measured: float, is_uneven: bool) -> float:
    """Return the time per sample after another measurement.

    It is the recent minimum, which excludes compilation and waiting, because smaller chunks would increase these.

    Args:
        known: the previous result; None for the first measurement.
        measured: the last measurement.
        is_uneven: True if the time really varies, so that the last measurement is returned.
    """
    return measured if is_uneven else min(measured, (known or measured) * _FORGETTING)
