"""``RayWorker``: the class of the actors that compute batches of one or more pipelines."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import dalify
from dalify.base.errors import ArgumentTypeError
from dalify.base.recent import Recent
from dalify.data.shared_memory import REGION_BYTES, Slot, SlotMemory
from dalify.executor.batch_source import Reply, Request
from dalify.executor.batch_worker import BatchWorker
from dalify.executor.remote import RemoteParts, pickled_setup
from dalify.plugin.ray.package import ray
from dalify.sources.pickling import CallbackPickler
from dalify.sources.worker_process import Failure, failure_of, trace_of

# A worker is not informed when a trainer ends, so it keeps only the most recently used engines.
_MAX_ENGINES = 8


class SetupReply(NamedTuple):
    """The reply of a worker to ``set_up``.

    Attributes:
        node: name and address of the machine.
        node_id: Ray's id of the node.
        process_id: id of the worker process.
        missing: paths of data that do not exist on the node.
        failure: error when loading the pipeline, or None.
    """

    node: str
    node_id: str
    process_id: int
    missing: Sequence[str]
    failure: Failure | None


class RayWorker:
    """Computes batches in an actor, one call at a time."""

    def __init__(self) -> None:
        self._workers: Recent[BatchWorker] = Recent(_MAX_ENGINES, BatchWorker.close)
        # Outputs are written here and copied to the object store. The system allocates only pages that are written.
        self._memory = Slot().memory[:REGION_BYTES]
        self._last_use = time.monotonic()

    def about(self) -> tuple[str, str]:
        """Return the version of dalify, and the name and address of the machine.

        Trainers with other versions call this method, so it must not change.
        """
        return dalify.__version__, f"{socket.gethostname()} ({ray.util.get_node_ip_address()})"

    def set_up(self, key: str, setup: Sequence[Any], paths: Sequence[str]) -> SetupReply:
        """Load a pipeline.

        Args:
            key: key of the pipeline.
            setup: list with the reference to the pickled ``WorkerSetup`` and the function that loads it.
            paths: paths of the data that it reads.
        """
        missing = [path for path in paths if not os.path.exists(path)]  # noqa: PTH110 -- strings of users
        failure = None
        if not missing:
            try:
                self._worker(key, setup)
            except Exception as error:
                failure = failure_of(error, trace_of(error, __file__))
        node_id = ray.get_runtime_context().get_node_id()
        return SetupReply(self.about()[1], node_id, os.getpid(), missing, failure)

    def compute(
        self, key: str, setup: Sequence[Any], request: Request
    ) -> tuple[Reply | Failure, np.ndarray[Any, Any] | None]:
        """Compute a batch.

        Args:
            key: key of the pipeline.
            setup: see ``set_up``.
            request: the batch to compute.

        Returns:
            The description of the batch or an error, and, as a separate object, the bytes of its values.
        """
        try:
            memory = SlotMemory(self._memory, 0, REGION_BYTES)
            reply = self._worker(key, setup).compute_into(memory, request)
            return reply, self._memory[: memory.end_bytes]
        except Exception as error:
            return failure_of(error, trace_of(error, __file__)), None
        finally:
            self._last_use = time.monotonic()

    def retire(self, idle_s: float) -> bool:
        """End this worker if it was idle for long enough; otherwise return True.

        Args:
            idle_s: required idle time in seconds.
        """
        if time.monotonic() - self._last_use >= idle_s:
            ray.actor.exit_actor()
        return True

    def _worker(self, key: str, setup: Sequence[Any]) -> BatchWorker:
        return self._workers.get_or_make(key, partial(loaded_worker, setup))[0]


def pickled_for_ray(parts: RemoteParts) -> tuple[bytes, Callable[[bytes], Any]]:
    """Return the setup of a pipeline's workers as bytes, and the function that loads them.

    Raises:
        ArgumentTypeError: a function or object in the graph cannot be pickled.
    """
    try:
        return pickled_setup(parts, CallbackPickler(parts.callback_pickler or ray.cloudpickle))
    except ArgumentTypeError as error:
        error.hint = "Pass a function or object that can be pickled: it is sent to the workers of Ray."
        raise


def loaded_worker(setup: Sequence[Any]) -> BatchWorker:
    """Return a worker for a pipeline.

    Args:
        setup: list with the reference to the pickled ``WorkerSetup`` and the function that loads it.
    """
    content, load = ray.get(setup[0])
    return BatchWorker(load(content))
