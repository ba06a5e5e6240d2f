"""The workers that one pipeline knows: which are starting, ready, or refused, and when there is one more or less."""

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
from dalify.plugin.ray.worker import Greeting
from dalify.sources.worker_process import error_of

__all__ = ["Event", "Member", "WorkerGroup", "watch"]

_logger = logging.getLogger("dalify.ray")

# A worker computes one batch and has the next one at hand.
_MAX_ORDERS = 2
# How often in a row a consumer asks while no batch is ready before a worker is added, and when one is taken away.
_STARVED_TIMES = 10
_IDLE_S = 30.0
# When a worker that could not begin is tried again: at first, and at most.
_FIRST_RETRY_S = 2.0
_LAST_RETRY_S = 60.0
# Workers that die before they are ready are started again immediately, at most this number of times.
_MAX_DEATHS_AT_START = 5
_SILENT_START_S = 8.0
_NAME_TAKEN_S = 0.2

Event = Callable[[Any, BaseException | None], None]


class Member:
    """A worker as a pipeline sees it."""

    def __init__(self, number: int, actor: Any) -> None:
        self.number = number
        self.actor = actor
        self.node = "a node"
        self.node_id = ""
        self.is_ready = False
        self.is_leaving = False
        self.orders: deque[Any] = deque()  # the first one is being computed
        self.began = self.idle_since = time.monotonic()  # the first of its orders; having none
        self.asked = self.began  # last, whether it is alive
        self.batches = 0
        self.is_slow = False


class _Retry(NamedTuple):
    at: float
    seconds: float
    deaths: int


_AT_ONCE = _Retry(0.0, _FIRST_RETRY_S, 0)


class WorkerGroup:
    """Workers of a pool.

    Args:
        pool: how many there are.
        key: of the pipeline.
        paths: of data that must be on their nodes.
        post: takes a function and its arguments, to be called by the thread that owns this object.
    """

    def __init__(self, pool: RayPool, key: str, paths: Sequence[str], post: Callable[..., None]) -> None:
        self._pool = pool
        self._key = key
        self._paths = paths
        self._post = post
        self.setup: list[Any] = []  # the reference to what workers load, in a list, so that Ray does not resolve it
        self.wanted = pool.minimum
        self.members: dict[int, Member] = {}
        self._retries: dict[int, _Retry] = {}
        self._starved = 0
        self._refusal: WorkerError | None = None
        self._told: set[str] = set()
        self._waits_since: float | None = None
        self._told_waiting = 0

    def begin(self, content: tuple[bytes, Callable[[bytes], Any]]) -> None:
        """Start the first workers.

        Args:
            content: of the setup, and what loads it.
        """
        self.setup = [ray.put(content)]
        self.fill_up()

    def fill_up(self) -> None:
        """Start the workers that are missing."""
        now = time.monotonic()
        for number in range(self.wanted):
            if number not in self.members and self._retries.get(number, _AT_ONCE).at <= now:
                self._start(number)

    def begin_again(self) -> None:
        """Start workers now that could not begin before, where there are no others."""
        if not self.members:
            self._retries.clear()
            self._refusal = None
            self.fill_up()

    def _start(self, number: int) -> None:
        try:
            member = Member(number, self._pool.start_worker(number))
        except ValueError:  # another trainer is registering this name at this moment
            self._retries[number] = _AT_ONCE._replace(at=time.monotonic() + _NAME_TAKEN_S)
            return
        self.members[number] = member
        if self._waits_since is None:
            self._waits_since = member.began
        watch(member.actor.about.remote(), partial(self._post, self._hear_about, member))
        greeting = member.actor.greet.remote(self._key, self.setup, self._paths)
        watch(greeting, partial(self._post, self._hear_greeting, member))

    def _hear_about(self, member: Member, about: Any, error: BaseException | None) -> None:
        if error is None and self.members.get(member.number) is member:
            version, member.node = about
            if version != dalify.__version__:
                self._refuse(
                    member,
                    f"{member.node} has dalify {version}, and this program {dalify.__version__}.",
                    "Install the same version on all nodes.",
                )

    def _hear_greeting(self, member: Member, greeting: Greeting | None, error: BaseException | None) -> None:
        if self.members.get(member.number) is not member:
            return
        if isinstance(error, ray.exceptions.RayTaskError):
            text = str(error).strip().splitlines()[-1]
            node = getattr(error, "ip", None) or member.node
            self._refuse(
                member,
                f"a worker on {node} cannot begin: {text}",
                "All nodes need the same dalify and the packages of your program.",
            )
        elif greeting is None:
            self._die_early(member, error)
        elif greeting.missing:
            self._refuse(
                member,
                f"{greeting.node} has no {greeting.missing[0]}, which the pipeline reads.",
                "Have the data at the same path on all nodes that run workers, or use resources= to choose nodes.",
            )
        elif greeting.failure is not None:
            cause = error_of(greeting.failure, "the pipeline")
            self._refuse(
                member,
                f"a worker on {greeting.node} cannot load the pipeline: {greeting.failure.text}",
                "Modules that it uses must be importable on all nodes.",
                cause,
            )
        else:
            member.node, member.node_id = greeting.node, greeting.node_id
            member.is_ready = True
            member.idle_since = time.monotonic()
            self._retries.pop(member.number, None)
            if all(other.is_ready for other in self.members.values()):
                self._waits_since = None
                self._told_waiting = 0

    def _die_early(self, member: Member, error: BaseException | None) -> None:
        retry = self._retries.get(member.number, _AT_ONCE)
        if retry.deaths < _MAX_DEATHS_AT_START:
            self._retries[member.number] = retry._replace(deaths=retry.deaths + 1)
            self.drop(member)
            return
        self._refuse(
            member,
            f"a worker died {retry.deaths + 1} times before it was ready: {str(error).splitlines()[0]}",
            "Ray's logs have its messages: ray logs.",
        )

    def _refuse(self, member: Member, text: str, hint: str, cause: Exception | None = None) -> None:
        """Do without a worker for a while."""
        retry = self._retries.get(member.number, _AT_ONCE)
        self._retries[member.number] = _Retry(
            time.monotonic() + retry.seconds, min(2 * retry.seconds, _LAST_RETRY_S), 0
        )
        self._refusal = WorkerError(text, hint=hint)
        self._refusal.__cause__ = cause
        if text not in self._told:
            self._told.add(text)
            _logger.warning("dalify: %s %s The other workers continue.", text, hint)
        self.drop(member)

    def drop(self, member: Member) -> None:
        """Forget a worker, which may be dead."""
        if self.members.get(member.number) is member:
            del self.members[member.number]
        with suppress(Exception):  # it is dead already
            ray.kill(member.actor)

    def next_free(self) -> Member | None:
        """Return the worker for the next order: of those with the fewest orders the first one."""
        free = [
            member
            for member in self.members.values()
            if member.is_ready and not member.is_leaving and len(member.orders) < _MAX_ORDERS
        ]
        return min(free, key=lambda member: (len(member.orders), member.number), default=None)

    # -- more and fewer

    def note_demand(self, *, is_starved: bool) -> None:
        """Add a worker where the consumer has waited for many batches in a row.

        Args:
            is_starved: whether no batch was ready when the next one was asked for.
        """
        self._starved = self._starved + 1 if is_starved else 0
        all_ready = len(self.members) == self.wanted and all(member.is_ready for member in self.members.values())
        if self._starved >= _STARVED_TIMES and all_ready and self.wanted < self._pool.maximum:
            self.wanted += 1
            self._starved = 0
            self.fill_up()

    def shrink(self) -> None:
        """End the last worker where it has had nothing to do."""
        last = self.members.get(self.wanted - 1)
        if last is None or self.wanted <= self._pool.minimum or not last.is_ready or last.orders or last.is_leaving:
            return
        if time.monotonic() - last.idle_since < _IDLE_S:
            return
        if self._pool.is_shared:  # others may use it
            last.is_leaving = True
            watch(last.actor.retire.remote(_IDLE_S), partial(self._post, self._hear_retired, last))
        else:
            self.wanted -= 1
            self.drop(last)

    def _hear_retired(self, member: Member, stays: bool | None, error: BaseException | None) -> None:
        if self.members.get(member.number) is not member:
            return
        member.is_leaving = False
        member.idle_since = time.monotonic()
        if not stays:
            self.wanted -= 1
            self.drop(member)

    # -- what is wrong

    def complaint(self, waited_s: float) -> WorkerError | None:
        """Return why no worker can compute; None if one can, or may soon.

        Args:
            waited_s: how long the oldest order has been waiting.
        """
        if any(member.is_ready for member in self.members.values()):
            return None
        if not self.members and self._refusal is not None:
            return self._refusal
        if waited_s < self._pool.start_timeout_s:
            return None
        if self._refusal is not None:
            return self._refusal
        return WorkerError(
            f"no worker could be started within start_timeout_s={self._pool.start_timeout_s:g}: {self._resources()}.",
            hint="End what uses the CPUs, add nodes, or take fewer cpus_per_worker.",
        )

    def log_waiting_workers(self) -> None:
        """Log that workers wait for room in the cluster, once for each number of them."""
        now = time.monotonic()
        if self._waits_since is None or now - self._waits_since < _SILENT_START_S:
            return
        self._waits_since = now
        waiting = sum(not member.is_ready for member in self.members.values())
        if waiting and waiting != self._told_waiting:
            self._told_waiting = waiting
            _logger.warning(
                "dalify: %d of %d workers are not ready: %s. End what uses the CPUs, add nodes, or take fewer workers "
                "or cpus_per_worker; they start as soon as there is room.",
                waiting,
                self.wanted,
                self._resources(),
            )

    def _resources(self) -> str:
        total, free = (found.get("CPU", 0.0) for found in (ray.cluster_resources(), ray.available_resources()))
        largest = max((node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]), default=0.0)
        cpus = self._pool.cpus_per_worker
        text = f"each needs {cpus:g} CPU, and of the cluster's {total:g} {free:g} are free"
        if largest < cpus:
            text += f"; its largest node has {largest:g}"
        if self._pool.resources:
            text += f"; each also needs {dict(self._pool.resources)}"
        return text

    def close(self) -> None:
        """End the workers, but for those that others use."""
        for member in list(self.members.values()):
            if not self._pool.is_shared:
                with suppress(Exception):
                    ray.kill(member.actor)
        self.members.clear()


def watch(reference: Any, event: Event) -> None:
    """Have an event posted when a call of an actor has ended.

    Args:
        reference: of its small result.
        event: takes the result or None, and the error or None.
    """

    def tell(future: Any) -> None:
        error = future.exception()
        event(None if error is not None else future.result(), error)

    reference.future().add_done_callback(tell)
