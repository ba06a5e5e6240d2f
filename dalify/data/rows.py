"""Samples that differ only in their first extent, concatenated in one array.

Boxes, points, labels and audio have this form: their number varies per sample. A kernel then processes a whole chunk
in one call instead of one call per sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from dalify.base.small_arrays import any_of, zeros
from dalify.data.torch_unsigned import joined_torch


class Rows:
    """N samples ``[n, ...]`` with any n each and equal other extents.

    Args:
        values: the rows of all samples, ``[total, ...]``, C-contiguous: NumPy array or torch tensor.
        starts: int64 ``[N + 1]``, a NumPy array on all devices: sample i is ``values[starts[i]:starts[i + 1]]``.
    """

    __slots__ = ("starts", "values")

    def __init__(self, values: Any, starts: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        self.values = values
        self.starts = starts

    @staticmethod
    def of_dense(dense: Any) -> Rows:
        """Return the samples of an array ``[N, n, ...]`` as rows, without a copy if it is contiguous."""
        count, length = dense.shape[:2]
        return Rows(dense.reshape(count * length, *dense.shape[2:]), _equal_starts(count, length))

    @staticmethod
    def of_samples(samples: Sequence[Any]) -> Rows:
        """Return samples, NumPy arrays or torch tensors, as rows; a copy except for a single sample."""
        starts = starts_of([sample.shape[0] for sample in samples])
        if len(samples) == 1:
            return Rows(samples[0], starts)
        return Rows(np.concatenate(samples) if isinstance(samples[0], np.ndarray) else joined_torch(samples), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Number of rows of each sample, int64 ``[N]``."""
        return self.starts[1:] - self.starts[:-1]

    def sample_of_row(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the sample index of each row, int64 ``[total]``."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def split(self) -> list[Any]:
        """Return the samples as a list of views."""
        values = self.values
        return [values[start:stop] for start, stop in pairwise(self.starts.tolist())]

    def dense(self) -> Any:
        """Return the samples as one array ``[N, n, ...]``, a view; None if their lengths differ."""
        starts = self.starts
        count = len(starts) - 1
        length = int(starts[1]) if count else 0
        if int(starts[-1]) != count * length or (count > 1 and any_of(starts[1:] - starts[:-1] != length)):
            return None
        return self.values.reshape(count, length, *self.values.shape[1:])

    def __repr__(self) -> str:
        """Return counts without data."""
        return f"Rows({len(self)} samples, {tuple(self.values.shape)})"


def starts_of(lengths: Sequence[int] | np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the offsets of samples of these lengths: int64 ``[N + 1]``."""
    starts = zeros(len(lengths) + 1, np.int64)
    np.add.accumulate(lengths, out=starts[1:])
    return starts


@lru_cache(1024)
def _equal_starts(count: int, length: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.arange(count + 1, dtype=np.int64) * length
