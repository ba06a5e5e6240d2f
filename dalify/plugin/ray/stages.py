"""``RayStages``: sends batches to Ray actors, collects the results, and replaces workers that fail."""

from __future__ import annotations

import atexit
import logging
import os
import queue
import statistics
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from dalify.base.errors import PipelineStateError, WorkerError
from dalify.base.fork_hook import Owner
from dalify.base.interrupts import CallAtEnd
from dalify.base.threads import Thread
from dalify.data.shared_memory import HELD_BATCHES
from dalify.executor.batch_source import Reply
from dalify.executor.iteration import Iteration
from dalify.executor.remote import MAX_DEATHS, MAX_TIMEOUTS, Order, RemoteParts, Replies
from dalify.executor.shared_batches import read_reply
from dalify.plugin.ray.package import ray
from dalify.plugin.ray.pool import RayPool
from dalify.plugin.ray.worker import pickled_for_ray
from dalify.plugin.ray.worker_group import Member, WorkerGroup, watch
from dalify.sources.worker_process import Failure, error_of

_logger = logging.getLogger("dalify.ray")

# A worker is slow if a batch takes this multiple of the usual time, and at least this number of seconds.
_SLOW_TIMES = 5.0
_SLOW_S = 2.0
_MIN_TIMED_BATCHES = 8
_TICK_S = 0.25
# Interval in seconds of the health checks of idle workers; their death is not reported otherwise.
_ALIVE_CHECK_S = 2.0
_FETCH_S = 0.02
_COPIED_BYTES = 1 << 20

_running: weakref.WeakSet[RayStages] = weakref.WeakSet()


def _close_all() -> None:
    """End the threads that wait for results, before Ray shuts down."""
    for stages in list(_running):
        stages.close()


class _Order(Order):
    """A batch to be computed by an actor."""

    def __init__(self, iteration: Iteration, done: Callable[[Iteration], None], generation: int) -> None:
        super().__init__(iteration, done, generation)
        self.submitted = time.monotonic()
        self.attempt = 0  # incremented when it is sent or queued again; results of earlier attempts are ignored
        self.timeouts = 0
        self.references: tuple[Any, Any] | None = None
        self.reply: Reply | None = None


class RayStages:
    """Stages that Ray actors compute; see ``RemoteStages``.

    The consumer's thread submits batches. Another thread waits for their results.

    Attributes:
        plan: the part of the plan that the actors compute.
    """

    def __init__(self, parts: RemoteParts, pool: RayPool) -> None:
        self._parts = parts
        self.plan = parts.plan.remote
        self._pool = pool
        self._replies = Replies(parts)
        self._key = uuid.uuid4().hex
        self._events: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._group = WorkerGroup(pool, self._key, sorted(_data_paths(parts)), self._post)
        self._lock = threading.RLock()
        self._waiting: deque[_Order] = deque()
        self._fetching: dict[Any, tuple[_Order, Member]] = {}
        self._finished: list[_Order] = []  # their callbacks are called without the lock
        self._outstanding: set[_Order] = set()
        self._generation = 0
        self._seconds: deque[float] = deque(maxlen=32)  # computing times of the last batches
        self._viewed = 0
        self._released: deque[int] = deque()
        self._last_check = time.monotonic()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._owner = Owner()

    @property
    def in_progress(self) -> int:
        """Number of batches that workers should have at the same time."""
        return 2 * self._group.wanted

    @property
    def nodes(self) -> list[str]:
        """Ids of the nodes of the workers that are ready, one per worker."""
        with self._lock:
            return [member.node_id for member in self._group.members.values() if member.is_ready]

    def renewed(self) -> Self:
        """Raise PipelineStateError, because Ray cannot run in a forked process."""
        raise PipelineStateError(
            "this process was forked from one that uses Ray, and Ray cannot run in it.",
            hint="Build the pipeline in the process that runs it, or start that one with 'spawn'.",
        )

    def start(self) -> None:
        """Start the workers.

        Raises:
            MissingPackageError: Ray is not installed.
            ArgumentTypeError: a function or object in the graph cannot be pickled.
            WorkerError: the system allows no more threads.
        """
        content = pickled_for_ray(self._parts)
        if not ray.is_initialized():
            ray.init()
        if not _running:
            atexit.unregister(_close_all)
            atexit.register(_close_all)  # registered after Ray's handler, hence called before it
        _running.add(self)
        thread = Thread(self._receive_results, "dalify-ray")
        try:
            with self._lock:
                self._group.start(content)
            thread.start()
            self._thread = thread
        except BaseException:  # the thread may have started if the user interrupts
            self.close()
            raise

    def submit(self, iteration: Iteration, done: Callable[[Iteration], None]) -> None:
        """Queue a batch; see ``RemoteStages``."""
        if iteration.error:
            done(iteration)
            return
        with self._lock:
            self._group.note_demand(is_starved=len(self._outstanding) >= self.in_progress)
            self._group.retry_now()
            order = _Order(iteration, done, self._generation)
            self._outstanding.add(order)
            self._waiting.append(order)
            self._dispatch()
        self._call_done()

    def discard(self) -> None:
        """Drop queued batches, and ignore the results of those that were sent; see ``RemoteStages``."""
        if not self._owner.is_this_process:
            return
        with self._lock:
            self._generation += 1
            while self._waiting:
                self._finish(self._waiting.popleft())
        self._call_done()

    def close(self) -> None:
        """End the thread, and the workers unless the pool is shared. Computed batches stay readable."""
        if not self._owner.is_this_process or self._closed:
            return
        self._closed = True
        _running.discard(self)
        self._events.put(None)
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(1.0)
        if ray.is_initialized():
            with self._lock:
                self._group.close()

    # -- called with the lock held

    def _dispatch(self) -> None:
        while self._waiting:
            member = self._group.next_free()
            if member is None:
                return
            order = self._waiting.popleft()
            try:
                self._send(order, member)
            except Exception as error:  # raised for this batch instead of here
                self._fail(order, error)

    def _send(self, order: _Order, member: Member) -> None:
        order.attempt += 1
        request = self._replies.request(order.iteration)
        compute = member.actor.compute.options(num_returns=2)
        order.references = meta, _ = compute.remote(self._key, self._group.setup, request)
        if not member.orders:
            member.began = time.monotonic()
        member.orders.append(order)
        watch(meta, partial(self._post, self._receive, member, order, order.attempt))

    def _fail(self, order: _Order, error: BaseException) -> None:
        order.iteration.record_error(error)
        self._finish(order)

    def _finish(self, order: _Order) -> None:
        order.references = order.reply = None
        self._finished.append(order)
        self._outstanding.discard(order)

    def _is_wanted(self, order: _Order) -> bool:
        return order.generation == self._generation and not order.iteration.discarded

    def _replace_worker(self, member: Member, error: BaseException) -> None:
        """Drop a worker and queue its batches again."""
        self._group.drop(member)
        orders = list(member.orders)
        member.orders.clear()
        if orders:
            orders[0].deaths += 1
        # Its computed results may have been lost with its node.
        for reference, (order, owner) in list(self._fetching.items()):
            if owner is member:
                del self._fetching[reference]
                orders.append(order)
        for order in orders:
            self._requeue(order, f"its last worker was on {member.node}: {str(error).strip().splitlines()[0]}")
        self._group.fill_up()
        self._dispatch()

    def _requeue(self, order: _Order, reason: str) -> None:
        order.attempt += 1
        order.references = order.reply = None
        if not self._is_wanted(order):
            self._finish(order)
        elif order.deaths >= MAX_DEATHS:
            self._fail(
                order,
                WorkerError(
                    f"batch {order.iteration.number} is lost: {order.deaths} workers died while they computed it; "
                    f"{reason}",
                    hint="Check for a crash in the code of the pipeline, or for a node that ran out of memory. The "
                    "next run() returns the next batch.",
                ),
            )
        else:
            order.submitted = time.monotonic()
            self._waiting = deque(sorted([*self._waiting, order], key=lambda item: item.iteration.order))

    # -- called in the thread that waits for results

    def _post(self, function: Callable[..., None], *arguments: Any) -> None:
        self._events.put(partial(function, *arguments))

    def _call_done(self) -> None:
        while self._finished:
            with suppress(IndexError):  # another thread took it
                order = self._finished.pop(0)
                try:
                    order.finish()
                except BaseException:  # no memory, for example; otherwise its consumer would wait forever
                    self._finished.append(order)
                    raise

    def _receive_results(self) -> None:
        while True:
            try:
                if self._closed:
                    return
                event = None
                with suppress(queue.Empty):
                    event = self._events.get(timeout=0 if self._fetching else _TICK_S)
                    if event is None:
                        return
                if event is not None:
                    with self._lock:
                        event()
                if self._fetching:
                    self._fetch()
                if time.monotonic() - self._last_check >= _TICK_S:
                    self._last_check = time.monotonic()
                    with self._lock:
                        self._check_all()
                self._call_done()
            except BaseException as error:  # Ray was shut down, or there is no memory, for instance
                with self._lock:
                    self._fail_all(error)
                self._call_done()

    def _receive(
        self,
        member: Member,
        order: _Order,
        attempt: int,
        reply: Reply | Failure | None,
        error: BaseException | None,
    ) -> None:
        """Handle the reply of a worker for a batch; its values are fetched next."""
        if order.attempt != attempt:  # the batch was queued again
            return
        if error is not None and not isinstance(error, ray.exceptions.RayTaskError):
            self._replace_worker(member, error)
            return
        now = time.monotonic()
        if order in member.orders:
            member.orders.remove(order)
        if member.batches:  # the first batch includes compilation
            self._seconds.append(now - member.began)
        member.batches += 1
        member.is_slow = False
        member.began = member.idle_since = now
        if isinstance(reply, Reply) and self._is_wanted(order):
            assert order.references is not None, "dalify bug: a reply without a request"
            order.reply = reply
            self._fetching[order.references[1]] = order, member
        elif isinstance(reply, Failure):
            self._fail(order, error_of(reply, f"batch {order.iteration.number}"))
        elif error is not None:
            text = str(error).strip().splitlines()[-1]
            self._fail(order, WorkerError(f"batch {order.iteration.number} failed on {member.node}: {text}"))
        else:
            self._finish(order)
        self._dispatch()

    def _fetch(self) -> None:
        """Fetch values that have arrived on this node."""
        ready, _ = ray.wait(list(self._fetching), num_returns=1, timeout=_FETCH_S, fetch_local=True)
        for reference in ready:
            with self._lock:
                order, member = self._fetching.pop(reference, (None, None))
            if order is None or member is None:
                continue
            try:
                values = ray.get(reference)
            except ray.exceptions.RayError as error:  # lost with its node
                with self._lock:
                    order.deaths += 1
                    self._requeue(order, f"its values, computed on {member.node}, were lost: {type(error).__name__}")
                    self._dispatch()
                continue
            with self._lock:
                self._store_values(order, values)

    def _store_values(self, order: _Order, values: np.ndarray[Any, Any]) -> None:
        reply, replies = order.reply, self._replies
        if reply is not None and self._is_wanted(order):
            # Consumers may hold any number of batches, but the object store is small.
            held = self._viewed - len(self._released)
            is_copied = held >= self.in_progress + HELD_BATCHES
            if values.nbytes < _COPIED_BYTES:
                memory = values.copy()
            else:
                memory = _ObjectStoreView(self._released, values).memory()
                self._viewed += 1
            try:
                replies.fill(order.iteration, read_reply(memory, reply, replies.origins_of), is_copied=is_copied)
            except Exception as error:
                order.iteration.record_error(error)
        self._finish(order)

    def _check_all(self) -> None:
        """Check for batches and workers that take too long."""
        group = self._group
        if not ray.is_initialized():
            raise PipelineStateError(
                "Ray was shut down while the pipeline was using it.", hint="Close the pipeline before ray.shutdown()."
            )
        if self._waiting:
            oldest = min(order.submitted for order in self._waiting)
            start_error = group.start_error(time.monotonic() - oldest)
            if start_error is not None:
                while self._waiting:
                    self._fail(self._waiting.popleft(), start_error)
        group.log_waiting_workers()
        group.fill_up()
        group.shrink()
        for member in list(group.members.values()):
            if member.orders:
                self._check_time(member, time.monotonic() - member.began)
            elif member.is_ready and time.monotonic() - member.last_check > _ALIVE_CHECK_S:
                member.last_check = time.monotonic()
                watch(member.actor.about.remote(), partial(self._post, self._note_answer, member))
        self._dispatch()

    def _note_answer(self, member: Member, about: Any, error: BaseException | None) -> None:
        """Replace a worker that died while it was idle."""
        if (
            error is not None
            and isinstance(error, ray.exceptions.RayActorError)
            and self._group.members.get(member.number) is member
        ):
            self._replace_worker(member, error)

    def _check_time(self, member: Member, elapsed_s: float) -> None:
        order: _Order = member.orders[0]
        number = order.iteration.number
        timeout_s = self._parts.timeout_s
        if timeout_s is not None and elapsed_s > timeout_s:
            order.timeouts += 1
            if order.timeouts >= MAX_TIMEOUTS:
                member.orders.popleft()
                order.attempt += 1
                self._fail(
                    order,
                    WorkerError(
                        f"the pipeline took longer than callback_timeout_s={timeout_s:g} for batch {number}, "
                        f"{order.timeouts} times; the last worker was on {member.node}.",
                        hint="Check what the pipeline waits for, or increase callback_timeout_s. The next run() "
                        "returns the next batch.",
                    ),
                )
            self._replace_worker(member, WorkerError("it took too long"))
            return
        if len(self._seconds) < _MIN_TIMED_BATCHES or not member.batches or member.is_slow:
            return
        usual_s = statistics.median(self._seconds)
        if elapsed_s > max(_SLOW_S, _SLOW_TIMES * usual_s):
            member.is_slow = True
            _logger.warning(
                "dalify: a worker on %s has been computing batch %d for %.1f s; the median is %.2f s. Check the node "
                "for other load. With callback_timeout_s= the pipeline sends such a batch to another worker.",
                member.node,
                number,
                elapsed_s,
                usual_s,
            )

    def _fail_all(self, error: BaseException) -> None:
        """Let all batches in progress fail."""
        for member in list(self._group.members.values()):
            member.orders.clear()
            if not member.is_ready:  # its answer may be lost
                self._group.drop(member)
        self._waiting.clear()
        self._fetching.clear()
        for order in list(self._outstanding):
            order.attempt += 1
            self._fail(order, error)


class _ObjectStoreView(CallAtEnd):
    """Keeps the bytes of a batch in the object store while an array views them.

    The array is writable although Ray's objects are read-only, because nothing else reads this object.
    """

    __array_interface__: dict[str, Any]
    _values: np.ndarray[Any, Any]

    def __new__(cls, released: deque[int], values: np.ndarray[Any, Any]) -> _ObjectStoreView:
        """Create a view.

        Args:
            released: a number is appended to it when the last array is released, by any thread.
            values: the array from Ray, which is read-only.
        """
        self = super().__new__(cls, released.append, 0)
        self._values = values
        interface = values.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
        return self

    def memory(self) -> np.ndarray[Any, Any]:
        """Return the bytes as an array; it and its views keep this object alive."""
        return np.asarray(self)


def _data_paths(parts: RemoteParts) -> Iterator[str]:
    """Yield the arguments of readers that are existing paths; they must also exist on the nodes of the workers."""
    for step in parts.plan.remote.readers.values():
        for value in step.node.arguments.values():
            for item in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(item, (str, Path)) and os.path.exists(item):  # noqa: PTH110 -- strings of users
                    yield str(item)
