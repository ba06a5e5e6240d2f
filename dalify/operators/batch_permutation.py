"""Draw a random permutation of the samples of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.data import DALIDataType
from dalify.kernels.random.philox import SampleDraws
from dalify.registry import PerSample, Spec, operator

# A permutation has no fixed point with probability 1/e: 60 attempts fail once in 1e12 batches.
_ATTEMPTS = 60


@operator(random=True)
def batch_permutation(
    *, allow_repetitions: bool = False, no_fixed_points: bool = False, _scope: PerSample[object] | None = None
) -> Spec:
    """Draw a permutation of the sample indices of the batch, for ``fn.permute_batch``.

    In a branch of a condition, it permutes the samples of the branch.

    Args:
        allow_repetitions: draw each index independently, with repetitions.
        no_fixed_points: no sample gets its own index. A batch of one sample still gets 0.

    Returns:
        one INT32 index per sample, 0 to batch size - 1.

    Example:
        >>> others = fn.permute_batch(images, indices=fn.batch_permutation())  # doctest: +SKIP
    """
    return Spec(DALIDataType.INT32, layout="", shape=())


@batch_permutation.cpu_batch
def _(*, allow_repetitions: bool, no_fixed_points: bool, draws: SampleDraws, count: int) -> Any:
    own = np.arange(count)
    if allow_repetitions:
        words = draws.bits(1)[:, 0].astype(np.uint64)
        others = count - 1 if no_fixed_points and count > 1 else count
        chosen = ((words * np.uint64(others)) >> np.uint64(32)).astype(np.int32)
        return chosen + (chosen >= own).astype(np.int32) if others < count else chosen
    order = own
    for attempt in range(_ATTEMPTS):
        words = draws.bits(2, first_block=attempt)
        order = np.lexsort((words[:, 1], words[:, 0]))
        if not no_fixed_points or count == 1 or not (order == own).any():
            return order.astype(np.int32)
    return np.roll(own, 1).astype(np.int32)
