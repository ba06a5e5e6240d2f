"""Arguments of source callbacks: information on the requested sample or batch."""

from __future__ import annotations

from typing import NamedTuple


# Named tuples: immutable, and created per sample in half the time of a frozen dataclass.
class SampleInfo(NamedTuple):
    """The sample requested from a per-sample source (``batch=False``).

    Attributes:
        idx_in_epoch: index of the sample in the epoch, from 0.
        idx_in_batch: index of the sample in its batch, from 0.
        iteration: index of the batch in the epoch, from 0.
        epoch_idx: index of the epoch; ``Pipeline.reset`` starts the next.
    """

    idx_in_epoch: int
    idx_in_batch: int
    iteration: int
    epoch_idx: int


class BatchInfo(NamedTuple):
    """The batch requested from a source with ``batch_info=True``.

    Attributes:
        iteration: index of the batch in the epoch, from 0.
        epoch_idx: index of the epoch; ``Pipeline.reset`` starts the next.
    """

    iteration: int
    epoch_idx: int
