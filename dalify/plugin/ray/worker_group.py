"""``WorkerGroup``: starts, checks, adds and ends the workers of one pipeline."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import dalify
from dalify.base.errors import WorkerError
from dalify.plugin.ray.package import ray
from dalify.plugin.ray.pool import RayPool
from dalify.plugin.ray.worker import SetupReply
from dalify.sources.worker_process import error_of

_logger = logging.getLogger("dalify.ray")

# A worker computes one batch and has the next one queued.
_MAX_ORDERS = 2
# A worker is added after this number of consecutive requests without a ready batch, and ended after this idle time.
_STARVED_TIMES = 10
_IDLE_S = 30.0
# First and maximum delay, in seconds, before a worker that failed to start is started again.
_FIRST_RETRY_S = 2.0
_LAST_RETRY_S = 60.0
# A worker that dies before it is ready is started again immediately, at most this number of times.
_MAX_DEATHS_AT_START = 5
_SILENT_START_S = 8.0
_NAME_TAKEN_S = 0.2

Event = Callable[[Any, BaseException | None], None]


class Member:
    """The state of a worker in the process of the pipeline."""

    def __init__(self, number: int, actor: Any) -> None:
        self.number = number
        self.actor = actor
        self.node = "a node"
        self.node_id = ""
        self.is_ready = False
        self.is_leaving = False
        self.orders: deque[Any] = deque()  # the first order is being computed
        self.began = self.idle_since = time.monotonic()  # times when its first order was sent and when it became idle
        self.last_check = self.began  # time of the last health check
        self.batches = 0
        self.is_slow = False


class _Retry(NamedTuple):
    at: float
    seconds: float
    deaths: int


_IMMEDIATE_RETRY = _Retry(0.0, _FIRST_RETRY_S, 0)


class WorkerGroup:
    """Workers of a pool.

    Args:
        pool: number and resources of the workers.
        key: key of the pipeline.
        paths: paths of data that must exist on their nodes.
        post: calls a function with arguments in the thread that owns this object.
    """

    def __init__(self, pool: RayPool, key: str, paths: Sequence[str], post: Callable[..., None]) -> None:
        self._pool = pool
        self._key = key
        self._paths = paths
        self._post = post
        self.setup: list[Any] = []  # the reference is in a list, so that Ray does not resolve it
        self.wanted = pool.minimum
        self.members: dict[int, Member] = {}
        self._retries: dict[int, _Retry] = {}
        self._starved = 0
        self._rejection: WorkerError | None = None
        self._logged: set[str] = set()
        self._waits_since: float | None = None
        self._logged_waiting = 0

    def start(self, content: tuple[bytes, Callable[[bytes], Any]]) -> None:
        """Start the first workers.

        Args:
            content: the pickled setup, and the function that loads it.
        """
        self.setup = [ray.put(content)]
        self.fill_up()

    def fill_up(self) -> None:
        """Start the missing workers, unless they must wait for a retry."""
        now = time.monotonic()
        for number in range(self.wanted):
            if number not in self.members and self._retries.get(number, _IMMEDIATE_RETRY).at <= now:
                self._start(number)

    def retry_now(self) -> None:
        """Start failed workers without delay if there are no others."""
        if not self.members:
            self._retries.clear()
            self._rejection = None
            self.fill_up()

    def _start(self, number: int) -> None:
        try:
            member = Member(number, self._pool.start_worker(number))
        except ValueError:  # another trainer is registering this name at this moment
            self._retries[number] = _IMMEDIATE_RETRY._replace(at=time.monotonic() + _NAME_TAKEN_S)
            return
        watch(member.actor.about.remote(), partial(self._post, self._check_version, member))
        reply = member.actor.set_up.remote(self._key, self.setup, self._paths)
        watch(reply, partial(self._post, self._handle_setup, member))
        self.members[number] = member  # last: without an answer it would never be ready
        if self._waits_since is None:
            self._waits_since = member.began

    def _check_version(self, member: Member, about: Any, error: BaseException | None) -> None:
        if error is None and self.members.get(member.number) is member:
            version, member.node = about
            if version != dalify.__version__:
                self._reject(
                    member,
                    f"{member.node} has dalify {version}, but this program has {dalify.__version__}.",
                    "Install the same version on all nodes.",
                )

    def _handle_setup(self, member: Member, reply: SetupReply | None, error: BaseException | None) -> None:
        if self.members.get(member.number) is not member:
            return
        if isinstance(error, ray.exceptions.RayTaskError):
            text = str(error).strip().splitlines()[-1]
            node = getattr(error, "ip", None) or member.node
            self._reject(
                member,
                f"a worker on {node} cannot start: {text}",
                "All nodes need the same version of dalify, and the packages of your program.",
            )
        elif reply is None:
            self._handle_early_death(member, error)
        elif reply.missing:
            self._reject(
                member,
                f"{reply.node} has no {reply.missing[0]}, which the pipeline reads.",
                "Provide the data at the same path on all nodes that run workers, or select nodes with resources=.",
            )
        elif reply.failure is not None:
            cause = error_of(reply.failure, "the pipeline")
            self._reject(
                member,
                f"a worker on {reply.node} cannot load the pipeline: {reply.failure.text}",
                "Modules that the pipeline uses must be importable on all nodes.",
                cause,
            )
        else:
            member.node, member.node_id = reply.node, reply.node_id
            member.is_ready = True
            member.idle_since = time.monotonic()
            self._retries.pop(member.number, None)
            if all(other.is_ready for other in self.members.values()):
                self._waits_since = None
                self._logged_waiting = 0

    def _handle_early_death(self, member: Member, error: BaseException | None) -> None:
        retry = self._retries.get(member.number, _IMMEDIATE_RETRY)
        if retry.deaths < _MAX_DEATHS_AT_START:
            self._retries[member.number] = retry._replace(deaths=retry.deaths + 1)
            self.drop(member)
            return
        self._reject(
            member,
            f"a worker died {retry.deaths + 1} times before it was ready: {str(error).splitlines()[0]}",
            "The messages of the worker are in Ray's logs: ray logs.",
        )

    def _reject(self, member: Member, text: str, hint: str, cause: Exception | None = None) -> None:
        """Drop a worker and start it again after a delay."""
        retry = self._retries.get(member.number, _IMMEDIATE_RETRY)
        self._retries[member.number] = _Retry(
            time.monotonic() + retry.seconds, min(2 * retry.seconds, _LAST_RETRY_S), 0
        )
        self._rejection = WorkerError(text, hint=hint)
        self._rejection.__cause__ = cause
        if text not in self._logged:
            self._logged.add(text)
            _logger.warning("dalify: %s %s The other workers continue.", text, hint)
        self.drop(member)

    def drop(self, member: Member) -> None:
        """Kill and remove a worker, which may already be dead."""
        if self.members.get(member.number) is member:
            del self.members[member.number]
        with suppress(Exception):  # it is already dead
            ray.kill(member.actor)

    def next_free(self) -> Member | None:
        """Return the first worker with the fewest orders; None if all are busy."""
        free = [
            member
            for member in self.members.values()
            if member.is_ready and not member.is_leaving and len(member.orders) < _MAX_ORDERS
        ]
        return min(free, key=lambda member: (len(member.orders), member.number), default=None)

    # -- the number of workers

    def note_demand(self, *, is_starved: bool) -> None:
        """Add a worker if the consumer had to wait for many consecutive batches.

        Args:
            is_starved: True if no batch was ready when the next one was requested.
        """
        self._starved = self._starved + 1 if is_starved else 0
        all_ready = len(self.members) == self.wanted and all(member.is_ready for member in self.members.values())
        if self._starved >= _STARVED_TIMES and all_ready and self.wanted < self._pool.maximum:
            self.wanted += 1
            self._starved = 0
            self.fill_up()

    def shrink(self) -> None:
        """End the last worker if it was idle for long enough."""
        last = self.members.get(self.wanted - 1)
        if last is None or self.wanted <= self._pool.minimum or not last.is_ready or last.orders or last.is_leaving:
            return
        if time.monotonic() - last.idle_since < _IDLE_S:
            return
        if self._pool.is_shared:  # others may use it
            last.is_leaving = True
            watch(last.actor.retire.remote(_IDLE_S), partial(self._post, self._handle_retired, last))
        else:
            self.wanted -= 1
            self.drop(last)

    def _handle_retired(self, member: Member, stays: bool | None, error: BaseException | None) -> None:
        if self.members.get(member.number) is not member:
            return
        member.is_leaving = False
        member.idle_since = time.monotonic()
        if not stays:
            self.wanted -= 1
            self.drop(member)

    # -- problems

    def start_error(self, waited_s: float) -> WorkerError | None:
        """Return the error if no worker is ready and none is expected; otherwise None.

        Args:
            waited_s: waiting time of the oldest order, in seconds.
        """
        if any(member.is_ready for member in self.members.values()):
            return None
        if not self.members and self._rejection is not None:
            return self._rejection
        if waited_s < self._pool.start_timeout_s:
            return None
        if self._rejection is not None:
            return self._rejection
        return WorkerError(
            f"no worker could be started within start_timeout_s={self._pool.start_timeout_s:g}: {self._resources()}.",
            hint="Free CPUs, add nodes, or reduce cpus_per_worker.",
        )

    def log_waiting_workers(self) -> None:
        """Log that workers wait for resources of the cluster, once for each number of waiting workers."""
        now = time.monotonic()
        if self._waits_since is None or now - self._waits_since < _SILENT_START_S:
            return
        self._waits_since = now
        waiting = sum(not member.is_ready for member in self.members.values())
        if waiting and waiting != self._logged_waiting:
            self._logged_waiting = waiting
            _logger.warning(
                "dalify: %d of %d workers are not ready: %s. Free CPUs, add nodes, or reduce workers or "
                "cpus_per_worker. They start when enough resources are free.",
                waiting,
                self.wanted,
                self._resources(),
            )

    def _resources(self) -> str:
        total, free = (found.get("CPU", 0.0) for found in (ray.cluster_resources(), ray.available_resources()))
        largest = max((node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]), default=0.0)
        cpus = self._pool.cpus_per_worker
        plural = "" if cpus == 1 else "s"
        text = f"each worker needs {cpus:g} CPU{plural}, and {free:g} of the cluster's {total:g} CPUs are free"
        if largest < cpus:
            text += f"; the largest node has {largest:g}"
        if self._pool.resources:
            text += f"; each worker also needs {dict(self._pool.resources)}"
        return text

    def close(self) -> None:
        """End the workers, unless the pool is shared."""
        for member in list(self.members.values()):
            if not self._pool.is_shared:
                with suppress(Exception):
                    ray.kill(member.actor)
        self.members.clear()


def watch(reference: Any, event: Event) -> None:
    """Call a function when the call of an actor has ended.

    Args:
        reference: reference to its result, which should be small.
        event: called with the result or None, and the error or None.
    """

    def report(future: Any) -> None:
        error = future.exception()
        event(None if error is not None else future.result(), error)

    reference.future().add_done_callback(report)
