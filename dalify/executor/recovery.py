"""Replaces and records samples that cannot be read or decoded.

A bad sample does not affect other samples. The replacement depends only on the position, so runs can be repeated and
resumed.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dalify.base.errors import (
    ON_ERROR,
    ArgumentValueError,
    DalifyError,
    DecodeError,
    ErrorRateError,
    GraphError,
    LimitError,
    MixedBatchError,
    option_error_text,
)
from dalify.base.failure_context import failure_context
from dalify.base.fork_lock import ForkLock
from dalify.executor.feeds import ReaderFeed
from dalify.executor.iteration import BadRecord, Iteration
from dalify.executor.plan import Plan
from dalify.executor.steps import Failure, is_decoder, walk
from dalify.graph import Node, upstream
from dalify.registry import Reader

# If this many consecutive samples are bad, the dataset is damaged, and replacements do not help.
_MAX_ATTEMPTS = 20
# Minimum number of samples for the error rate of a pipeline without readers.
_FEWEST_SAMPLES = 100
_EXHAUSTED = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)
# Limits the memory of the record in long runs with many bad files to about 20 MB.
_MAX_RECORDED = 50_000


@dataclass(frozen=True, slots=True)
class BadSample:
    """A sample that could not be read or decoded.

    Attributes:
        source: file or key of the sample; "" if unknown.
        operator: public name of the operator that failed.
        line: the user's line, ``file:line``; "" if unknown.
        error: class and message of the exception.
        epoch: epoch of the reader, from 0.
        batch: number of the batch, from 0.
        sample: position in the batch.
        action: ``skip``: another sample of the shard replaced it; ``replace``: a blank sample replaced it.
    """

    source: str
    operator: str
    line: str
    error: str
    epoch: int
    batch: int
    sample: int
    action: Literal["skip", "replace"]

    def __str__(self) -> str:
        """Return origin and error in one line."""
        where = self.source or f"sample {self.sample} of batch {self.batch}"
        return f"{where}: {self.error} ({self.operator} at {self.line})" if self.line else f"{where}: {self.error}"


class Recovery:
    """Finds replacements for bad samples, and records them.

    Args:
        plan: the plan; its nodes specify the handling of errors.
        readers: readers by slot of their first output.
        on_error: handling of bad samples for nodes that do not specify it.
        max_error_rate: maximum fraction of bad samples in an epoch; None for no limit.

    Attributes:
        bad_samples: the latest bad samples.
        bad_count: total number of bad samples.

    Raises:
        ArgumentValueError: an option is unknown.
        GraphError: bad samples of an operator cannot be replaced by others.
    """

    def __init__(
        self, plan: Plan, readers: Mapping[int, ReaderFeed], on_error: str, max_error_rate: float | None
    ) -> None:
        self._readers = readers
        self._max_error_rate = max_error_rate
        self._policies: dict[Node, Literal["skip", "replace"]] = {}
        self._skips_limits = on_error == "skip"  # also for operators that do not read or decode
        self._slots: dict[Node, list[int]] = {}  # slots of the readers whose samples a node gets
        self._beside: set[Node] = set()  # nodes whose chunks are read again if they are computed again
        self._lock = ForkLock()
        self._given = 0
        self.bad_samples: list[BadSample] = []
        self.bad_count = 0
        self._texts: dict[str, str] = {}
        self._per_epoch: Counter[tuple[int, int]] = Counter()  # by slot of a reader, and its epoch
        for stage in plan.stages:
            steps = list(walk(stage.steps))
            beside = [slot for slot, reader in plan.readers.items() if reader in steps]
            for step in steps:
                if beside:
                    self._slots[step.node] = beside
                    self._beside.add(step.node)
                if not (isinstance(step.node.operator, Reader) or is_decoder(step.node)):
                    continue
                policy: Any = step.node.arguments.get("on_error") or on_error
                self._check(step.node, policy, bool(beside))
                if policy != "raise":
                    self._policies[step.node] = policy
                    sources = {step.node, *upstream(step.node)}
                    self._slots[step.node] = [slot for slot, reader in readers.items() if reader.node in sources]

    @staticmethod
    def _check(node: Node, policy: str, is_beside_reader: bool) -> None:
        call = node.call_of(None)
        location: dict[str, Any] = {"line": call.line, "operator": call.operator}
        if policy not in ON_ERROR:
            raise ArgumentValueError(option_error_text("on_error", policy, ON_ERROR), **location)
        if policy == "skip" and not is_beside_reader:
            raise GraphError(
                "on_error='skip' takes another sample from a reader, but no reader feeds this operator directly.",
                hint="Use on_error='replace', which inserts a blank sample, or add a reader before it; no "
                "operator that needs whole batches may be between them.",
                **location,
            )

    def clear_record(self) -> None:
        """Clear the record, because the run continues from another position."""
        self._given = self.bad_count = 0
        self.bad_samples = []
        self._texts.clear()
        self._per_epoch.clear()

    def begin(self, epoch: int) -> None:
        """Reset the counts of an epoch that is read again, and of later ones."""
        for slot, number in list(self._per_epoch):
            if number >= epoch:
                del self._per_epoch[slot, number]

    def replace_bad_sample(self, iteration: Iteration, error: BaseException) -> bool:
        """Replace a bad sample.

        Args:
            iteration: the batch, whose entries or replacements are changed.
            error: the error, which contains node and sample.

        Returns:
            True if the chunk must be computed again; False if the error remains.
        """
        failure: Failure | None = failure_context(error).failure
        if failure is None or failure.position is None or isinstance(error, ImportError) or _is_exhaustion(error):
            return False
        if iteration.discarded:  # the batch is not needed, and reading another sample may take long
            return False
        node, position = failure.node, failure.position
        if failure.is_dropped and node in self._beside and iteration.fetch_again(position):
            return True
        policy = self._policies.get(node)
        if policy is None and self._skips_limits and isinstance(error, LimitError) and node in self._slots:
            policy = "skip"
        is_bad_data = isinstance(node.operator, Reader) or isinstance(error, (DecodeError, MixedBatchError))
        if policy is None or not is_bad_data:
            return False
        with iteration.lock:
            attempt = iteration.attempts.get(position, 0)
            if attempt >= _MAX_ATTEMPTS and isinstance(error, DalifyError):
                tried = f"on_error='skip' tried {_MAX_ATTEMPTS} samples for this position, and all of them are bad."
                error.hint = f"{error.hint} {tried}".lstrip()
            if attempt >= _MAX_ATTEMPTS or position in iteration.substitutes.get(node, ()):
                return False
            iteration.add_bad(BadRecord(position, attempt, node, policy, failure.origin, _described(error)))
            if policy == "replace":
                iteration.substitute(node, position)
            else:
                # Readers of the same size may belong together, like images and masks; the sample is skipped in all.
                sizes = {self._readers[slot].sampler.options.size for slot in self._slots[node]}
                entries = {
                    slot: reader.sampler.replacement(
                        self._epoch(iteration, slot, position), iteration.number, position, attempt
                    )
                    for slot, reader in self._readers.items()
                    if reader.sampler.options.size in sizes
                }
                iteration.retry(position, attempt, entries)
        return True

    def record_bad_samples(self, iteration: Iteration) -> None:
        """Record the bad samples of a finished batch.

        Raises:
            ErrorRateError: too many samples are bad.
        """
        self._given += iteration.size
        if not iteration.bad:
            return
        found: set[tuple[int, int]] = set()
        for bad in sorted(iteration.bad, key=lambda bad: (bad.position, bad.attempt)):
            call = bad.node.call_of(None)
            slot = self._slots[bad.node][0] if self._slots[bad.node] else -1
            epoch = self._epoch(iteration, slot, bad.position)
            self.bad_samples.append(
                BadSample(
                    source=self._text(bad.origin or ""),
                    operator=call.operator,
                    line=self._text("" if call.line is None else str(call.line)),
                    error=self._text(bad.error),
                    epoch=epoch,
                    batch=iteration.number,
                    sample=bad.position,
                    action=bad.policy,
                )
            )
            self.bad_count += 1
            self._per_epoch[slot, epoch] += bad.attempt == 0
            found.add((slot, epoch))
        if len(self.bad_samples) > _MAX_RECORDED:
            del self.bad_samples[: -_MAX_RECORDED // 2]
        for slot, epoch in sorted(found):
            self._check_rate(slot, epoch)

    def _text(self, text: str) -> str:
        """Return an equal stored string, because the same files are bad in each epoch."""
        if len(self._texts) > _MAX_RECORDED:
            self._texts.clear()
        return self._texts.setdefault(text, text)

    def _epoch(self, iteration: Iteration, slot: int, position: int) -> int:
        """Return the epoch of a sample of a reader; 0 without a reader."""
        reader = self._readers.get(slot)
        return 0 if reader is None else reader.sampler.epoch_of(iteration.before["sources"][reader.number], position)

    def _check_rate(self, slot: int, epoch: int) -> None:
        if self._max_error_rate is None:
            return
        reader = self._readers.get(slot)
        size = max(self._given, _FEWEST_SAMPLES) if reader is None else reader.sampler.options.largest_shard
        count = self._per_epoch[slot, epoch]
        if count > self._max_error_rate * size:
            last = self.bad_samples[-1]
            raise ErrorRateError(
                f"{count} of the {size} samples of this epoch could not be used: more than "
                f"max_error_rate={self._max_error_rate:g} allows. The last bad sample: {last}",
                hint="pipe.bad_samples() lists all bad samples.",
            )


def _is_exhaustion(error: BaseException) -> bool:
    """Return whether the system has no files or memory left, so that the sample may be good.

    A MemoryError does not count, because libraries also raise it for damaged data.
    """
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, OSError) and found.errno in _EXHAUSTED:
            return True
        found = found.__cause__
    return False


def _described(error: BaseException) -> str:
    text = getattr(error, "message", None) or str(error)
    return f"{type(error).__name__}: {text}".rstrip(": ")


def valid_samples(size: int, padded: int, bad: Sequence[BadRecord[Node]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of the samples of a batch that are not padding or replacements, bool ``[size]``.

    Args:
        size: number of samples in the batch.
        padded: number of samples at its end that repeat another one.
        bad: ``Iteration.bad``.
    """
    valid = np.empty(size, np.bool_)
    valid.fill(True)  # np.ones takes several times as long for a batch
    if padded or bad:  # rare, and a list of positions is slower than the rest of this function
        valid[size - padded :] = False
        valid[[record.position for record in bad]] = False
    return valid
