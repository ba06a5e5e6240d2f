"""The recorded calls of a thread, and their computation.

When a value is needed, everything that it depends on becomes one graph, together with other live values that share work
with it. Calls whose results are not referenced have been deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from dalify.api.functions import to_user_outputs
from dalify.base.first_error import FirstError
from dalify.base.fork_lock import ForkLock
from dalify.base.optional import LazyModule
from dalify.base.source_line import SourceLine
from dalify.data import Batch
from dalify.graph import Evaluator, Immediate, evaluating
from dalify.graph.evaluator import Compute
from dalify.immediate.calls import bind_call, compute_now, kind_key
from dalify.immediate.lazy.calls import Call, Result
from dalify.immediate.lazy.statistics import COUNTS
from dalify.immediate.lazy.values import LazyValue, lazy_value
from dalify.immediate.user_data import Value, value_of
from dalify.registry import Operator

if TYPE_CHECKING:
    from dalify.immediate.lazy import compiled_graph
    from dalify.passes import Report
else:
    # Imported at first use: it imports the executor.
    compiled_graph = LazyModule("dalify.immediate.lazy.compiled_graph", "computing what was recorded")

_Output = tuple[Call, int]


class Tape:
    """The recorded calls of one thread.

    Attributes:
        num_threads: number of threads, from the block that was entered last.
        copies: whether input arrays are copied.
        report: report of the passes for the graph that was computed last.
    """

    def __init__(self) -> None:
        self.num_threads = 1
        self.copies = True
        self.report: Report | None = None
        self._lock = ForkLock()
        self._calls: WeakSet[Call] = WeakSet()

    # -- recording

    def record(self, operator: Operator, inputs: Sequence[Any], given: Mapping[str, Any]) -> Any:
        """Record a call; return lazy values for its results.

        Raises:
            DalifyError: an error that does not depend on data.
        """
        if operator.is_serial or operator.has_side_effect:
            # User functions run immediately, once per call.
            with evaluating(Immediate()):
                return compute_now(operator, inputs, given)
        is_relabeled = bool(given.get("layout")) and "layout" not in operator.parameters
        read = self._read_data if is_relabeled else self._read
        call = bind_call(operator, inputs, given, read, partial(Call, self, SourceLine.capture()))
        self._calls.add(call)
        return to_user_outputs(operator, [lazy_value(call, output) for output in range(len(call.results))], given)

    def _read(self, item: Any) -> Value:
        """Convert a user's object to a `Value`; results of recorded calls become a `Result`."""
        if isinstance(item, LazyValue) and item.call.tape is self and item.spec.is_known and not item.is_exposed:
            return Result(item.call, item.output, item.spec.device)
        return self._read_data(item)

    def _read_data(self, item: Any) -> Value:
        """Convert a user's data, copied if `copies`."""
        value = value_of(item)
        is_fresh = not value.is_array or isinstance(item, (list, tuple))
        return value if is_fresh or not self.copies else Value(value.batch.copied(), value.kind)

    # -- computing

    def compute(self, call: Call, output: int) -> None:
        """Compute an output, together with other live values that share work with it."""
        with self._lock:
            if call.results[output] is not None:
                return
            wanted = _outputs_sharing_work(call)
            if (call, output) not in wanted:
                wanted.append((call, output))
            if len(wanted) > 1:
                with suppress(Exception):  # an error of another value is raised when that value is accessed
                    self._compute(wanted)
                    return
            self._compute([(call, output)])

    def flush(self) -> None:
        """Compute all live values; after an error the others are still computed.

        Raises:
            Exception: the first error.
        """
        with self._lock:
            wanted = [
                (call, output)
                for call in sorted(self._calls, key=lambda item: item.order)
                for output in call.live_outputs()
            ]
            with suppress(Exception):
                self._compute(wanted)
                return
            failure = FirstError()
            for call, output in wanted:
                try:
                    self._compute([(call, output)])
                except Exception as error:
                    failure.record(error)
            failure.raise_first()

    def _compute(self, wanted: Iterable[_Output]) -> None:
        groups: dict[int, list[_Output]] = {}
        for call, output in wanted:
            if call.results[output] is None:
                groups.setdefault(call.count, []).append((call, output))
        for count, group in groups.items():
            self._compute_group(group, count)

    def _compute_group(self, wanted: list[_Output], count: int) -> None:
        """Compute outputs with the same number of samples."""
        wanted = [(call, output) for call, output in wanted if call.results[output] is None]
        found: set[Call] = set()
        before: list[_Output] = []
        waiting = [call for call, _ in wanted]
        while waiting:
            call = waiting.pop()
            if call not in found:
                found.add(call)
                for source in call.pending_inputs():
                    if source.call.count == count:
                        waiting.append(source.call)
                    else:  # a single sample that is broadcast to a batch
                        before.append((source.call, source.output))
        self._compute(before)
        if not wanted:
            return
        calls = sorted(found, key=lambda call: call.order)
        feeds: list[Batch] = []
        structure = self._structure(calls, wanted, count, feeds)
        kinds = tuple(map(kind_key, feeds))
        plan, is_cached = compiled_graph.PLANS.get_or_make(
            (structure, tuple(call.node for call in calls), kinds),
            lambda: compiled_graph.CompiledGraph(calls, structure, feeds),
        )
        COUNTS.add("plans_reused" if is_cached else "plans_made")
        self.report = plan.report
        results = plan.compute(calls, feeds, count)
        COUNTS.add("operators_run", len(calls))
        COUNTS.add("operators_repeated", sum(call.has_run for call in calls))
        COUNTS.add_fallbacks(plan.fallbacks(calls))
        for call in calls:
            call.mark_run()
        for (call, output), batch in zip(wanted, results, strict=True):
            call.keep(output, batch)
        self._calls.difference_update([call for call in calls if call.is_done])

    def _structure(
        self, calls: Sequence[Call], wanted: Sequence[_Output], count: int, feeds: list[Batch]
    ) -> compiled_graph.Structure:
        """Return the connections of calls; collect the data that they read."""
        indices = {call: index for index, call in enumerate(calls)}
        numbers: dict[int, int] = {}  # indices of feeds by data, so that data read twice are one feed
        device = ""

        def read(source: Value) -> tuple[int, int]:
            nonlocal device
            if isinstance(source, Result):
                result = source.data()
                if result is None:
                    return indices[source.call], source.output
                source = Value(result, source.kind)
            batch = source.batch
            if id(batch) not in numbers:
                numbers[id(batch)] = len(feeds)
                feeds.append(source.repeated(count))
                if batch.device == "gpu" and not device:
                    device = str(batch.torch_device)
            return -1, numbers[id(batch)]

        reads = tuple(tuple(read(source) for source in call.sources()) for call in calls)
        outputs = tuple((indices[call], output) for call, output in wanted)
        return compiled_graph.Structure(reads, outputs, self.num_threads, device)


class Recorder(Evaluator):
    """The evaluator of lazy mode: records calls on data."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    @property
    def is_lazy(self) -> bool:
        """Whether calls on data are deferred: yes."""
        return True

    def call(self, operator: Operator, inputs: Sequence[Any], given: Mapping[str, Any], compute: Compute) -> Any:
        """Record a call; return lazy values for its results."""
        return self._tape.record(operator, inputs, given)


def _outputs_sharing_work(call: Call) -> list[_Output]:
    """Return the outputs that are computed together with a call.

    These are live outputs that no other call reads and that share work with the call, because computing them later
    would repeat the work. Live outputs that another call reads are not included, because outputs of the graph cannot be
    fused.
    """
    found: set[Call] = set()
    waiting = [call]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += [source.call for source in one.pending_inputs()]
    around = set(found)
    waiting = list(found)
    while waiting:
        for reader in waiting.pop().waiting_readers():
            if reader not in around:
                around.add(reader)
                waiting.append(reader)
    ends = sorted((one for one in around if not one.waiting_readers()), key=lambda one: one.order)
    return [(one, output) for one in ends if one.count == call.count for output in one.live_outputs()]
