"""Checks that all samples of a batch have the same dtype and number of dimensions.

Samples are read in chunks by several threads. The result does not depend on their order: a sample is wrong if it
differs from the first sample of the batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import MixedBatchError
from dalify.base.failure_context import failure_context
from dalify.base.wording import counted
from dalify.data import Array


class Kind(NamedTuple):
    """Dtype and shape of a sample.

    Attributes:
        dtype: dtype of the elements.
        shape: shape of the sample; extents of other samples may differ.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def fits(self, dtype: np.dtype[Any], ndim: int) -> bool:
        """Return whether a sample with this dtype and number of dimensions may be in the same batch."""
        return self.dtype == dtype and len(self.shape) == ndim


class NotDecided(BaseException):
    """The samples of a chunk differ, and the first sample of the batch is in another chunk.

    It does not derive from Exception, so that handlers of sample errors do not catch it.
    """


class Agreement:
    """Dtypes and numbers of dimensions in the chunks of a batch, by output.

    Attributes:
        open_chunks: start and stop of the chunks that must be computed again.
    """

    def __init__(self) -> None:
        self.open_chunks: set[tuple[int, int]] = set()
        self._found: dict[int, dict[tuple[int, int], tuple[Kind, bool]]] = {}
        self._known: dict[int, Kind] = {}
        self._lock = threading.Lock()

    def of(self, slot: int) -> Kind | None:
        """Return the dtype and shape that decide for an output; None before `decide`."""
        return self._known.get(slot)

    def note(self, slot: int, chunk: tuple[int, int], kind: Kind, *, is_blank: bool) -> None:
        """Record the first sample of a chunk.

        Args:
            slot: slot of the output.
            chunk: start and stop of the chunk.
            kind: dtype and shape of the sample.
            is_blank: True if all samples of the chunk are replacements, which decide nothing.
        """
        with self._lock:
            self._found.setdefault(slot, {})[chunk] = (kind, is_blank)

    def decide(self) -> list[tuple[int, int]]:
        """Decide by the first sample, after all chunks were computed; return the chunks to be computed again."""
        if not self.open_chunks and all(len(found) == 1 for found in self._found.values()):
            return []  # a single chunk
        again = set(self.open_chunks)
        self.open_chunks = set()
        for slot, found in self._found.items():
            kinds = [found[chunk] for chunk in sorted(found)]
            known = self._known[slot] = next((kind for kind, is_blank in kinds if not is_blank), kinds[0][0])
            again.update(chunk for chunk, (kind, _) in found.items() if not known.fits(kind.dtype, len(kind.shape)))
        return sorted(again)


def agreed_samples(
    samples: Sequence[Array],
    slot: int,
    chunk: tuple[int, int],
    agreement: Agreement | None,
    is_blank: Callable[[int], bool],
    conversion_hint: str = "",
) -> Sequence[Array]:
    """Return the samples of a chunk, with blank samples of the dtype and number of dimensions of the others.

    Args:
        samples: samples of the chunk, on the CPU.
        slot: slot of the output.
        chunk: start and stop of the chunk; a branch has fewer samples.
        agreement: agreement of the batch; None if the chunk is the whole batch.
        is_blank: returns whether the sample at an index of the chunk replaces a bad one.
        conversion_hint: how to convert the dtypes, for messages.

    Raises:
        NotDecided: the decision depends on another chunk.
        MixedBatchError: a sample differs from the first one; with its index in the chunk.
    """
    known = None if agreement is None else agreement.of(slot)
    dtype, ndim = samples[0].dtype, samples[0].ndim
    if (known is None or known.fits(dtype, ndim)) and all(x.dtype == dtype and x.ndim == ndim for x in samples):
        if agreement is not None:
            blank = is_blank(0) and all(map(is_blank, range(len(samples))))
            agreement.note(slot, chunk, Kind(dtype, samples[0].shape), is_blank=blank)
        return samples
    first = next((index for index in range(len(samples)) if not is_blank(index)), None)
    like = samples[first or 0]
    kind = known or Kind(like.dtype, like.shape)
    if agreement is not None:
        agreement.note(slot, chunk, kind, is_blank=first is None)
        if known is None and chunk[0]:
            agreement.open_chunks.add(chunk)
            raise NotDecided
    result: list[Array] = []
    for index, sample in enumerate(samples):
        if kind.fits(sample.dtype, sample.ndim):
            result.append(sample)
        elif is_blank(index):
            result.append(np.zeros(kind.shape, kind.dtype))
        else:
            error = _error(sample, kind, conversion_hint)
            failure_context(error).sample = index
            raise error
    return result


def _error(sample: Array, kind: Kind, conversion_hint: str) -> MixedBatchError:
    dtype, ndim = kind.dtype, len(kind.shape)
    if sample.dtype != dtype:
        return MixedBatchError(
            f"the sample has the element type {sample.dtype}, but the first sample of the batch has {dtype}.",
            hint=f"All samples of a batch must have the same element type. {conversion_hint}on_error='skip' skips such "
            "samples.",
        )
    found = f"{counted(sample.ndim, 'dimension')}, shape {tuple(sample.shape)}"
    return MixedBatchError(
        f"the sample has {found}, but the first sample of the batch has {ndim}.",
        hint="All samples of a batch must have the same number of dimensions. on_error='skip' skips such samples.",
    )
