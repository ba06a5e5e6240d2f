"""Handle samples that cannot be read or decoded.

A bad sample does not affect other samples, the batch stays full, and every bad sample is recorded. The replacement
depends only on the position, so runs can be repeated and resumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dalify.base.errors import (
    ON_ERROR,
    ArgumentValueError,
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
from dalify.executor.iteration import Iteration
from dalify.executor.plan import Plan
from dalify.executor.steps import Failure, walk
from dalify.graph import Node

__all__ = ["BadSample", "Recovery", "valid_samples"]

# Where so many samples in a row are bad, the data are, and no other sample is going to help.
_MOST_ATTEMPTS = 20
# Of a pipeline without readers, the error rate is that of so many samples at least.
_FEWEST_SAMPLES = 100
# Of a run of months with many bad files, the record must not fill the memory: these are some 20 MB.
_MOST_RECORDED = 50_000


@dataclass(frozen=True, slots=True)
class BadSample:
    """A sample that could not be read or decoded.

    Attributes:
        source: file or key that it came from; "" where that is not known.
        operator: public name of the operator that failed.
        line: the user's line, ``file:line``; "" where that is not known.
        error: what was wrong, with the exception's class.
        epoch: of the reader, from 0.
        batch: number of the batch, from 0.
        sample: place in the batch.
        action: ``skip``: another sample of the shard took its place; ``replace``: a blank one did.
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
        """Return one line."""
        where = self.source or f"sample {self.sample} of batch {self.batch}"
        return f"{where}: {self.error} ({self.operator} at {self.line})" if self.line else f"{where}: {self.error}"


class Recovery:
    """Finds replacements for bad samples, and keeps the record.

    Args:
        plan: what runs; its nodes tell what to do about errors.
        readers: by slot of their first output.
        on_error: for nodes that do not tell themselves.
        max_error_rate: largest share of the samples of an epoch that may be bad; None for any.

    Attributes:
        bad_samples: the latest ones.
        bad_count: how many there were.

    Raises:
        ArgumentValueError: an option that does not exist.
        GraphError: a sample cannot be refilled where it may turn out to be bad.
    """

    def __init__(
        self, plan: Plan, readers: Mapping[int, ReaderFeed], on_error: str, max_error_rate: float | None
    ) -> None:
        self._readers = readers
        self._max_error_rate = max_error_rate
        self._policies: dict[Node, str] = {}
        self._skips_limits = on_error == "skip"  # also of operators that neither read nor decode
        self._slots: dict[Node, list[int]] = {}  # of the readers whose samples a node sees
        self._beside: set[Node] = set()  # nodes whose chunks are read again when they are computed again
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
                operator = step.node.operator
                if beside:
                    self._slots[step.node] = beside
                    self._beside.add(step.node)
                if not (operator.is_reader or operator.stand_in_function is not None):
                    continue
                policy = step.node.arguments.get("on_error") or on_error
                self._check(step.node, policy, bool(beside))
                if policy != "raise":
                    self._policies[step.node] = policy
                    self._slots[step.node] = [
                        slot for slot, reader in readers.items() if _comes_from(step.node, reader.node)
                    ]

    @staticmethod
    def _check(node: Node, policy: str, is_beside_reader: bool) -> None:
        place: dict[str, Any] = {"line": node.line, "operator": node.operator.public_name}
        if policy not in ON_ERROR:
            raise ArgumentValueError(option_error_text("on_error", policy, ON_ERROR), **place)
        if policy == "skip" and not is_beside_reader:
            raise GraphError(
                "on_error='skip' takes another sample from a reader, but none feeds this operator directly.",
                hint="Use on_error='replace', which puts a blank sample there, or a reader in front of it; no "
                "operator that needs whole batches may stand in between.",
                **place,
            )

    def forget(self) -> None:
        """Begin with an empty record: the run goes on from somewhere else."""
        self._given = self.bad_count = 0
        self.bad_samples = []
        self._texts.clear()
        self._per_epoch.clear()

    def begin(self, epoch: int) -> None:
        """Count anew what is read once more: an epoch from its beginning, and those behind it."""
        for slot, number in list(self._per_epoch):
            if number >= epoch:
                del self._per_epoch[slot, number]

    def absolve(self, iteration: Iteration, error: BaseException) -> bool:
        """Put something in the place of a sample that failed.

        Args:
            iteration: the batch. What is to be read there, or stands in for the data, is changed.
            error: what was raised; it tells node and sample.

        Returns:
            whether the samples of the chunk should be computed again; otherwise the error stands.
        """
        failure: Failure | None = failure_context(error).failure
        if failure is None or failure.position is None or isinstance(error, ImportError):
            return False
        if iteration.discarded:  # nobody waits for it; another sample might be long in coming
            return False
        node, position = failure.node, failure.position
        if failure.is_dropped and node in self._beside:
            with iteration.lock:
                if position not in iteration.fetched_again:
                    iteration.fetched_again.add(position)
                    return True
        policy = self._policies.get(node)
        if policy is None and self._skips_limits and isinstance(error, LimitError) and node in self._slots:
            policy = "skip"
        if policy is None or not (node.operator.is_reader or isinstance(error, (DecodeError, MixedBatchError))):
            return False
        with iteration.lock:
            attempt = iteration.attempts.get(position, 0)
            if attempt >= _MOST_ATTEMPTS or position in iteration.stand_ins.get(node, ()):
                return False
            # A blank from the reader is no picture for the decoder behind it, and another sample may be the same one
            # again: one bad sample, not two.
            is_told = any(position in stand_ins for stand_ins in iteration.stand_ins.values()) or any(
                item[0] == position and item[4] == failure.origin for item in iteration.bad
            )
            if not is_told:
                iteration.bad.append((position, attempt, node, policy, failure.origin, _described(error)))
            if policy == "replace":
                iteration.stand_ins.setdefault(node, set()).add(position)
            else:
                iteration.attempts[position] = attempt + 1
                # Readers of equally many samples belong together, as pictures and masks; others lose nothing by this.
                sizes = {self._readers[slot].sampler.options.size for slot in self._slots[node]}
                for slot, reader in self._readers.items():
                    if reader.sampler.options.size in sizes:
                        epoch = self._epoch(iteration, slot, position)
                        entry = reader.sampler.refill(epoch, iteration.number, position, attempt)
                        iteration.entries[slot][position] = entry
        return True

    def settle(self, iteration: Iteration) -> None:
        """Put the bad samples of a finished batch on record.

        Raises:
            ErrorRateError: there were too many.
        """
        self._given += iteration.size
        if not iteration.bad:
            return
        found: set[tuple[int, int]] = set()
        for position, attempt, node, policy, origin, text in sorted(iteration.bad, key=lambda item: item[:2]):
            line = self._text("" if node.line is None else str(node.line))
            slot = self._slots[node][0] if self._slots[node] else -1
            epoch = self._epoch(iteration, slot, position)
            self.bad_samples.append(
                BadSample(
                    self._text(origin or ""),
                    node.operator.public_name,
                    line,
                    self._text(text),
                    epoch,
                    iteration.number,
                    position,
                    policy,
                )
            )
            self.bad_count += 1
            self._per_epoch[slot, epoch] += attempt == 0
            found.add((slot, epoch))
        if len(self.bad_samples) > _MOST_RECORDED:
            del self.bad_samples[: -_MOST_RECORDED // 2]
        for slot, epoch in sorted(found):
            self._check_rate(slot, epoch)

    def _text(self, text: str) -> str:
        """Return an equal text that is kept already: the same files are bad in each epoch."""
        if len(self._texts) > _MOST_RECORDED:
            self._texts.clear()
        return self._texts.setdefault(text, text)

    def _epoch(self, iteration: Iteration, slot: int, position: int) -> int:
        """Return the epoch of a sample of a reader; 0 where there is none."""
        reader = self._readers.get(slot)
        return 0 if reader is None else reader.sampler.epoch_of(iteration.before["sources"][reader.place], position)

    def _check_rate(self, slot: int, epoch: int) -> None:
        if self._max_error_rate is None:
            return
        reader = self._readers.get(slot)
        size = max(self._given, _FEWEST_SAMPLES) if reader is None else reader.sampler.options.largest_shard
        count = self._per_epoch[slot, epoch]
        if count > self._max_error_rate * size:
            last = self.bad_samples[-1]
            raise ErrorRateError(
                f"{count} of the {size} samples of this epoch could not be used: more than max_error_rate="
                f"{self._max_error_rate:g} allows. The last one: {last}",
                hint="pipe.bad_samples() lists them.",
            )


def _comes_from(node: Node, reader: Node) -> bool:
    seen: set[Node] = set()
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if found is reader:
            return True
        if found not in seen:
            seen.add(found)
            waiting += [edge.node for edge in found.edges()]
    return False


def _described(error: BaseException) -> str:
    text = getattr(error, "message", None) or str(error)
    return f"{type(error).__name__}: {text}".rstrip(": ")


def valid_samples(size: int, padded: int, bad: Sequence[tuple[Any, ...]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which samples of a batch are there in their own right: ``[size]``.

    Args:
        size: of the batch.
        padded: how many at its end repeat another.
        bad: what ``Iteration.bad`` holds.
    """
    valid = np.ones(size, np.bool_)
    if padded or bad:  # seldom, and a list of places takes longer than all the rest
        valid[size - padded :] = False
        valid[[item[0] for item in bad]] = False
    return valid
