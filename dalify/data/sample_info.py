"""What a source callback is told about the sample or batch it is asked for."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["BatchInfo", "SampleInfo"]


# Named tuples: one is made per sample, they cannot be changed, and a frozen dataclass takes twice as long to make.
class SampleInfo(NamedTuple):
    """Which sample a per-sample source (``batch=False``) is asked for.

    Attributes:
        idx_in_epoch: number of the sample in the epoch, from 0.
        idx_in_batch: number of the sample in its batch, from 0.
        iteration: number of the batch in the epoch, from 0.
        epoch_idx: number of the epoch; ``Pipeline.reset`` begins the next.
    """

    idx_in_epoch: int
    idx_in_batch: int
    iteration: int
    epoch_idx: int


class BatchInfo(NamedTuple):
    """Which batch a source with ``batch_info=True`` is asked for.

    Attributes:
        iteration: number of the batch in the epoch, from 0.
        epoch_idx: number of the epoch; ``Pipeline.reset`` begins the next.
    """

    iteration: int
    epoch_idx: int
