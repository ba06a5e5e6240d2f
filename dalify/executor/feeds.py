"""The inputs of a pipeline: external sources, fed data, and the samplers of readers.

They are called in the thread that schedules an iteration, one iteration after the other, so that sources are called in
order of their indices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.errors import (
    BatchSizeError,
    CheckpointError,
    DalifyError,
    LayoutError,
    NoDataError,
    PipelineStateError,
    SourceError,
    UnknownInputError,
    suggestion,
)
from dalify.base.first_error import FirstError
from dalify.base.interrupts import Completion
from dalify.base.narrow import is_list
from dalify.base.optional import LazyModule, torch
from dalify.data import Batch, BufferPool, moved
from dalify.data.batch import joined_on_device
from dalify.data.torch_unsigned import stacked_torch
from dalify.executor.device_steps import uploaded_batch
from dalify.executor.steps import cause, device_error, located
from dalify.graph import Node, rule_arguments
from dalify.registry import FedSource
from dalify.sources.convert import BatchConverter, to_batch
from dalify.sources.declaration import Declaration, declarations
from dalify.sources.external import ExternalSource, SourceOptions
from dalify.sources.sampler import Sampler

if TYPE_CHECKING:
    from dalify.sources import parallel
    from dalify.sources.worker_pool import WorkerPool
else:
    # Imported at first use, because the modules for worker processes take long to import.
    parallel = LazyModule("dalify.sources.parallel", "sources in worker processes")

_SOURCE_OPTIONS = ("num_outputs", "cycle", "batch", "batch_info")


class ExternalFeed:
    """One ``external_source``, with the user's callback or a queue of fed batches.

    Args:
        node: the graph node.
        slots: slots of its outputs.
        batch_size: maximum number of samples in a batch.
        pool: memory for the copies on the host.
        torch_device: device for data of GPU nodes; None without a device.
        workers: processes that call the source, for ``parallel=True``; None if the pipeline has none.

    Attributes:
        number: index of its state among the states of all feeds.
    """

    def __init__(
        self,
        node: Node,
        slots: tuple[int, ...],
        batch_size: int,
        pool: BufferPool,
        torch_device: str | None,
        workers: WorkerPool | None,
    ) -> None:
        arguments = node.arguments
        self.node = node
        self._make = node.operator.feed_function if isinstance(node.operator, FedSource) else None
        self.number = 0
        self.slots = slots
        self.name = node.name
        self._torch_device = torch_device
        self._fed: deque[list[Batch] | Callable[[], Sequence[Any]]] = deque()
        # Recorded after the copies of fed data, because the program may feed and run on different streams.
        self._copy_events: list[Any] = []
        self._batch_size = batch_size
        self._last: list[Batch] | None = None
        self._repeat_last: bool = arguments.get("repeat_last", False)
        self._is_blocking = bool(arguments.get("blocking"))
        self._arrival: Completion | None = None  # of data for which a run waits
        self._is_calling = False
        self._taken_back: list[Batch] | None = None
        self._state_before: Any = None
        self.source: Any = None
        self._is_parallel = arguments.get("source") is not None and bool(arguments.get("parallel"))
        # Workers return views of their shared memory, which must not be copied again.
        is_copied = not (arguments.get("no_copy") or arguments.get("parallel"))
        is_for_device = node.output_device == "gpu"
        self._copies_on_device = is_copied and is_for_device
        try:
            if arguments.get("source") is not None:
                given = {name: arguments[name] for name in _SOURCE_OPTIONS if name in arguments}
                options = SourceOptions(batch_size=batch_size, **given)
                if self._is_parallel:
                    assert workers is not None, "dalify bug: a parallel source without workers"
                    depth: int = arguments.get("prefetch_queue_depth", 1)
                    self.source = parallel.ParallelSource(workers, arguments["source"], options, depth)
                else:
                    self.source = ExternalSource(arguments["source"], options)
            declared = declarations(
                arguments.get("num_outputs"),
                dtype=arguments.get("dtype"),
                ndim=arguments.get("ndim"),
                layout=arguments.get("layout"),
            )
            self._converters = [
                BatchConverter(
                    each,
                    batch_size=batch_size,
                    copy=is_copied and not is_for_device,  # copied to the device
                    allocate=lambda shape, dtype: pool.empty(tuple(shape), np.dtype(dtype)),
                )
                for each in declared
            ]
        except Exception as error:
            raise located(error, node) from cause(error, node)

    def next_batch(self) -> list[Batch]:
        """Return the next batch of each output.

        Raises:
            StopIteration: the source has ended.
            PipelineStateError: nothing was fed, without ``blocking``.
            Exception: an error of the source, with its location as a note.
        """
        if self.source is None:
            return self._next_fed()
        if self._taken_back is not None:
            batches, self._taken_back = self._taken_back, None
            return batches
        if self._is_calling:
            raise PipelineStateError(
                "the source runs the pipeline that is calling it.",
                line=self.node.line,
                hint="A source cannot wait for outputs of its own pipeline; use a second pipeline.",
            )
        self._is_calling = True
        try:
            data = self.source.next_batch()
            return self._converted(data)
        except StopIteration:
            raise
        except Exception as error:
            raise located(error, self.node) from cause(error, self.node)
        finally:
            self._is_calling = False

    def take_back(self, batches: list[Batch], state: Any) -> None:
        """Cancel the last batches; the next call returns them again.

        Args:
            batches: the result of ``next_batch``.
            state: the result of ``state`` before that call.
        """
        if self.source is None:
            self._fed.appendleft(batches)
        else:
            self._taken_back = batches
            self._state_before = state

    def _converted(self, data: Sequence[Any]) -> list[Batch]:
        return [self._on_device(convert(item)) for convert, item in zip(self._converters, data, strict=True)]

    def _on_device(self, batch: Batch) -> Batch:
        wanted, device = self.node.output_device, self._torch_device
        if wanted == "cpu":
            return moved(batch, wanted)
        assert device is not None, "dalify bug: data for a device without a device"
        if batch.device == "gpu" and str(batch.torch_device) != device:  # data on another device
            return batch.map(lambda tensor: tensor.to(device))
        if batch.device == "gpu":
            return _copied_on_device(batch) if self._copies_on_device else batch
        try:
            return uploaded_batch(batch, device)
        except Exception as error:
            refusal = device_error(error, self.node)
            if refusal is None:
                raise
            raise refusal from error

    def _next_fed(self) -> list[Batch]:
        while self._is_blocking and not (self._fed or self.repeats):
            self._arrival = arrival = Completion()
            if not self._fed:  # nothing was fed meanwhile
                arrival.wait()
        while self._copy_events:
            torch.cuda.current_stream(self._torch_device).wait_event(self._copy_events.pop())
        if self._fed:
            fed = self._fed.popleft()
            self._last = self._made(fed) if callable(fed) else fed
        elif not self.repeats:
            raise self._nothing_fed()
        assert self._last is not None, "dalify bug: a batch that was not fed is repeated"
        # A copy, because consumers may modify the batch in place.
        return [to_batch(batch) for batch in self._last] if self._repeat_last else self._last

    def _made(self, make: Callable[[], Sequence[Any]]) -> list[Batch]:
        """Return the batch that an operator creates from fed data."""
        specs = self.node.operator.apply_rule((), rule_arguments(self.node))
        try:
            return [
                self._on_device(
                    Batch(None, data, spec.layout or "") if is_list(data) else Batch(data, None, spec.layout or "")
                )
                for spec, data in zip(specs, make(), strict=True)
            ]
        except Exception as error:
            raise located(error, self.node) from cause(error, self.node)

    def _nothing_fed(self) -> NoDataError:
        kind = self.node.operator.public_name.removeprefix("fn.")
        return NoDataError(
            f"no data were fed to the {kind}{f' {self.name!r}' if self.name else ''}.",
            line=self.node.line,
            hint="Call pipe.feed_input(name, data) before each run, pass the data to pipe.run(name=data), or "
            "give it a source."
            if self._make is None
            else "Call pipe.feed_input(name, data) again before the fed data are used up.",
        )

    def feed(self, data: Any, layout: str | None) -> None:
        """Add a batch for a later iteration.

        Args:
            data: an array with a leading sample axis, or a list of samples.
            layout: layout of the samples; None for the declared one.

        Raises:
            PipelineStateError: the node has a source.
            DalifyError: the data are not supported; data that were fed before remain.
        """
        if self.source is not None:
            raise PipelineStateError(
                f"the external_source {self.name!r} has a source and cannot be fed.",
                line=self.node.line,
            )
        try:
            if data is None:
                raise SourceError(
                    "None cannot be fed as data.", hint="Feed an array with a leading sample axis, or a list."
                )
            if self._make is not None:
                # The data are used once, so they are not copied; they need not match previous data.
                samples = BatchConverter(Declaration(), batch_size=self._batch_size, copy=False)(data).samples
                self._fed.extend(self._make(samples, batch_size=self._batch_size, **rule_arguments(self.node)))
            else:
                (batch,) = self._converted([data])
                if layout and len(layout) != batch.ndim:
                    raise LayoutError(f"the layout {layout!r} cannot describe samples of shape {batch.shapes()[0]}.")
                declared = self._converters[0].layout
                if layout and declared and layout != declared:
                    raise LayoutError(
                        f"the data were fed with the layout {layout!r}, but the declared layout is {declared!r}.",
                        hint="Omit layout in feed_input(), or correct one of them.",
                    )
                self._fed.append([batch.with_layout(layout) if layout else batch])
                if batch.device == "gpu" and (self._torch_device or "").startswith("cuda"):
                    self._copy_events.append(torch.cuda.current_stream(self._torch_device).record_event())
        except Exception as error:
            raise located(error, self.node) from cause(error, self.node)
        if self._arrival is not None:
            self._arrival.set()

    @property
    def repeats(self) -> bool:
        """Whether the last batch is reused if no new one was fed."""
        return self._repeat_last and self._last is not None

    @property
    def is_iterated_by_workers(self) -> bool:
        """Whether worker processes iterate over the source, so that its state cannot be restored."""
        return self._is_parallel and not self.source.resumes_exactly

    @property
    def shared_bytes(self) -> list[int]:
        """Memory in bytes of each slot for worker processes; empty without them."""
        return self.source.shared_bytes if self._is_parallel else []

    @property
    def has_unrepeatable_items(self) -> bool:
        """Whether the source has returned items that it cannot repeat."""
        return isinstance(self.source, ExternalSource) and self.source.unrepeatable_count > 0

    @property
    def fed_count(self) -> int:
        """Number of waiting batches."""
        return len(self._fed)

    def reset(self) -> None:
        """Start the next epoch of the source."""
        self._taken_back = None
        if self.source is not None:
            self.source.reset()

    def restart(self, is_next: bool) -> None:
        """Start the next epoch of the source, or restart the current one, at its first item."""
        self._taken_back = None
        if self.source is not None:
            self.source.restart(is_next)

    def state(self) -> dict[str, Any] | None:
        """Return the state of the source; None for fed data, whose position the caller tracks."""
        if self._taken_back is not None:
            return self._state_before
        return None if self.source is None else self.source.state()

    def restore(self, state: dict[str, Any] | None) -> None:
        """Continue at a ``state()`` of the source; unused fed data are dropped.

        Raises:
            CheckpointError: the source cannot continue there.
        """
        self._fed.clear()
        self._last = self._taken_back = None
        if self.source is not None:
            try:
                self.source.restore(state or {})
            except Exception as error:
                raise located(error, self.node) from cause(error, self.node)

    def reset_in_child(self, state: dict[str, Any] | None) -> None:
        """Allow a new call of the source in a forked child, if a thread of the parent was calling it."""
        self._is_calling = False
        if self.source is not None and not self.has_unrepeatable_items and not self.is_iterated_by_workers:
            self.restore(state)

    def close(self) -> None:
        """Close the source."""
        if self.source is not None:
            self.source.close()


def _copied_on_device(batch: Batch) -> Batch:
    """Return a copy, by one call of torch: one tensor, or one block for samples of different shapes."""
    if batch.dense is not None:
        return batch.copied()
    if batch.is_uniform:
        return Batch(stacked_torch(batch.samples), None, batch.layout, "gpu", batch.origins, batch.dtype)
    return Batch(None, None, batch.layout, "gpu", batch.origins, batch.dtype, joined_on_device(batch))


class ReaderFeed:
    """The sampler of one reader.

    Attributes:
        number: index of its state among the states of all feeds.
    """

    def __init__(self, node: Node, sampler: Sampler) -> None:
        self.node = node
        self.number = 0
        self.sampler = sampler

    def next_entries(self, count: int) -> np.ndarray[Any, Any]:
        """Return the numbers of the next entries, int64 ``[count]``."""
        try:
            return self.sampler.next_batch(count)
        except DalifyError as error:
            self.node.locate(error)
            raise
        except Exception as error:  # of a sampler of the user
            place = f" at {self.node.line}" if self.node.line else ""
            error.add_note(f"Raised by the sampler of {self.node.operator.public_name}{place}.")
            raise

    def state(self) -> dict[str, Any]:
        """Return the state of the sampler."""
        return self.sampler.state()

    def restore(self, state: dict[str, Any] | None) -> None:
        """Continue at a ``state()`` of the sampler.

        Raises:
            CheckpointError: the state belongs to other data.
        """
        try:
            self.sampler.restore({} if state is None else state)
        except DalifyError as error:
            self.node.locate(error)
            raise

    def reset_in_child(self, state: dict[str, Any]) -> None:
        """Restore the state in a forked child; see ``ExternalFeed.reset_in_child``."""
        self.restore(state)


class Feeds:
    """The external sources and the readers of a pipeline, with a common state.

    If one feed fails, ends or is restored, the others must remain at the same batch.

    Args:
        externals: external sources, in the order of their calls.
        readers: readers by slot of their first output.
        workers: processes of parallel sources, which end with the feeds; None if there are none.
    """

    def __init__(
        self,
        externals: Sequence[ExternalFeed],
        readers: Mapping[int, ReaderFeed],
        workers: WorkerPool | None = None,
    ) -> None:
        self.externals = externals
        self.readers = readers
        self.workers = workers
        # In the order of the program, because a state must not depend on the passes.
        self._in_order = sorted([*externals, *readers.values()], key=lambda feed: feed.node.number)
        for number, feed in enumerate(self._in_order):
            feed.number = number

    def next_batches(self, states: Sequence[Any]) -> tuple[list[tuple[ExternalFeed, list[Batch]]], FirstError]:
        """Call every external source, even if one fails; return the batches and the first error.

        Args:
            states: the current ``state()``.

        Raises:
            StopIteration: a source has ended.
        """
        fed: list[tuple[ExternalFeed, list[Batch]]] = []
        failure = FirstError()
        for feed in self.externals:
            try:
                fed.append((feed, feed.next_batch()))
            except StopIteration:
                raise
            except Exception as error:
                failure.record(error)
            except BaseException:  # Ctrl-C; no source may be ahead of the others
                for earlier, batches in fed:
                    earlier.take_back(batches, states[earlier.number])
                if not feed.has_unrepeatable_items and not feed.is_iterated_by_workers:
                    feed.restore(states[feed.number])
                raise
        return fed, failure

    def external(self, source: str | Node) -> ExternalFeed:
        """Return an external source by its name or its traced node.

        Raises:
            UnknownInputError: there is no such external source.
        """
        for feed in self.externals:
            if feed.node.number == source.number if isinstance(source, Node) else feed.name == source:
                return feed
        names = [feed.name for feed in self.externals if feed.name]
        known = f"It has: {', '.join(names)}." if names else "Specify a name for the external_source."
        raise UnknownInputError(
            f"the pipeline has no external_source {source!r}.{suggestion(str(source), names)}", hint=known
        )

    def state(self) -> list[Any]:
        """Return the state of each feed; see ``Pipeline.state_dict``."""
        return [feed.state() for feed in self._in_order]

    def restore(self, states: Sequence[Any]) -> None:
        """Continue at a ``state()`` of feeds of the same graph.

        Raises:
            CheckpointError: a feed cannot continue at its state.
        """
        if len(states) != len(self._in_order):
            raise CheckpointError(
                f"the checkpoint contains {len(states)} readers and sources, but the pipeline has "
                f"{len(self._in_order)}."
            )
        for feed, state in zip(self._in_order, states, strict=True):
            feed.restore(state)

    def rewind(self, states: Sequence[Any]) -> None:
        """Restore the readers; data of external sources are lost."""
        for feed, state in zip(self._in_order, states, strict=True):
            if isinstance(feed, ReaderFeed):
                feed.restore(state)

    def reset_in_child(self, states: Sequence[Any]) -> None:
        """Restore the state before a call of the feeds, in a child that was forked during the call."""
        for feed, state in zip(self._in_order, states, strict=True):
            feed.reset_in_child(state)

    @property
    def can_restore(self) -> bool:
        """Whether ``restore`` works with the existing sources; otherwise all must be created again."""
        return not any(feed.is_iterated_by_workers for feed in self.externals)

    @property
    def shared_bytes(self) -> list[int]:
        """Memory in bytes of each slot for worker processes, of all sources."""
        return [size for feed in self.externals for size in feed.shared_bytes]

    @property
    def have_unrepeatable_items(self) -> bool:
        """Whether a source has returned items that it cannot repeat, for instance a generator."""
        return any(feed.has_unrepeatable_items for feed in self.externals)

    def start_epoch(self, epoch: int, is_next: bool) -> None:
        """Start an epoch of all readers, and the next one of all external sources, at its first sample.

        Args:
            epoch: number of the readers' epoch.
            is_next: True to start the next epoch of external sources, False to restart the current one.
        """
        for reader in self.readers.values():
            reader.sampler.start_epoch(epoch)
        for feed in self.externals:
            feed.restart(is_next)

    def close(self) -> None:
        """Close the workers and all sources."""
        if self.workers is not None:
            self.workers.close()
        for feed in self.externals:
            feed.close()


def common_size(batches: list[tuple[Node, Batch]], largest: int) -> int:
    """Return the number of samples in this iteration, equal for all sources.

    Args:
        batches: the first output of each external source.
        largest: the result without external sources.

    Raises:
        BatchSizeError: sources returned different numbers of samples.
    """
    sizes = {len(batch) for _, batch in batches}
    if not sizes:
        return largest
    if len(sizes) > 1:
        details = ", ".join(f"{node.name or node.line or node.label}: {len(batch)}" for node, batch in batches)
        raise BatchSizeError(
            f"the external sources returned batches of different sizes ({details}).",
            hint="All sources of a pipeline must return the same number of samples in an iteration.",
        )
    return sizes.pop()
