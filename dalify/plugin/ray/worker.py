"""What runs in an actor: engines for requests, one for each pipeline that uses the actor."""

from __future__ import annotations

import os
import socket
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import dalify
from dalify.executor.batch_source import Request
from dalify.executor.batch_worker import BatchWorker, WorkerSetup
from dalify.executor.shared_batches import SharedReply, SlotMemory, new_slot, write_reply
from dalify.plugin.ray.package import ray
from dalify.sources.shared_memory import REGION_BYTES
from dalify.sources.worker_process import Failure, failure_of, trace_of

__all__ = ["Greeting", "RayWorker"]

# A worker is not informed when a trainer ends. It keeps the engines that it used last.
_MAX_ENGINES = 8


class Greeting(NamedTuple):
    """What a worker tells when it is ready, or why it is not.

    Attributes:
        node: name and address of the machine.
        node_id: Ray's.
        process_id: of the worker.
        missing: paths of the data that are not there.
        failure: why the pipeline cannot be loaded; None where it can.
    """

    node: str
    node_id: str
    process_id: int
    missing: Sequence[str]
    failure: Failure | None


class _Ready(NamedTuple):
    worker: BatchWorker
    readers: dict[int, int]  # slots of readers by the identity of their index


class RayWorker:
    """Computes batches in an actor; it does one thing at a time."""

    def __init__(self) -> None:
        self._engines: OrderedDict[str, _Ready] = OrderedDict()
        # Outputs are written here and copied into the object store; the system gives memory for what is written.
        self._memory = new_slot().memory[:REGION_BYTES]
        self._last_use = time.monotonic()

    def about(self) -> tuple[str, str]:
        """Return the version of dalify, and name and address of the machine. All versions have this method."""
        return dalify.__version__, f"{socket.gethostname()} ({ray.util.get_node_ip_address()})"

    def greet(self, key: str, setup: Sequence[Any], paths: Sequence[str]) -> Greeting:
        """Make ready for a pipeline.

        Args:
            key: of the pipeline.
            setup: reference to the bytes of its ``WorkerSetup`` and to what loads them.
            paths: of data that it reads.
        """
        missing = [path for path in paths if not os.path.exists(path)]  # noqa: PTH110 -- texts that users wrote
        failure = None
        if not missing:
            try:
                self._engine(key, setup)
            except Exception as error:
                failure = failure_of(error, trace_of(error, __file__))
        node_id = ray.get_runtime_context().get_node_id()
        return Greeting(self.about()[1], node_id, os.getpid(), missing, failure)

    def compute(
        self, key: str, setup: Sequence[Any], request: Request
    ) -> tuple[SharedReply | Failure, np.ndarray[Any, Any] | None]:
        """Compute a batch; return what became of it and, as another object, the bytes of its values.

        Args:
            key: of the pipeline.
            setup: see ``greet``.
            request: which batch.
        """
        try:
            memory = SlotMemory(self._memory, 0, REGION_BYTES)
            worker, readers = self._engine(key, setup)
            reply = write_reply(memory, worker.compute(request, memory), readers)
            return reply, self._memory[: memory.end_bytes]
        except Exception as error:
            return failure_of(error, trace_of(error, __file__)), None
        finally:
            self._last_use = time.monotonic()

    def retire(self, idle_s: float) -> bool:
        """End this worker if no trainer has used it for some seconds; return whether it stays.

        Args:
            idle_s: how long.
        """
        if time.monotonic() - self._last_use >= idle_s:
            ray.actor.exit_actor()
        return True

    def _engine(self, key: str, setup: Sequence[Any]) -> _Ready:
        ready = self._engines.get(key)
        if ready is None:
            content, load = ray.get(setup[0])
            loaded: WorkerSetup = load(content)
            worker = BatchWorker(loaded)
            ready = _Ready(worker, {id(index): slot for slot, index in worker.indices.items()})
            while len(self._engines) >= _MAX_ENGINES:
                self._engines.popitem(last=False)[1].worker.close()
            self._engines[key] = ready
        self._engines.move_to_end(key)
        return ready
