"""``RayPool``: the number, resources and names of the actors that compute batches."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.base.narrow import is_integer, is_number
from dalify.plugin.ray.package import ray
from dalify.plugin.ray.worker import RayWorker

_NAMESPACE = "dalify"
_MAX_WORKERS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class RayPool:
    """Workers that several trainers share, each with its own pipeline and shard.

    The object is a description: it can be pickled and sent to trainers on any node. The workers are detached actors
    that the first trainer starts. They run until ``close``, even if trainers end.

    Args:
        workers: fixed number of workers, or None.
        min_workers: minimum number of workers.
        max_workers: maximum number of workers. A worker is added if a trainer requested ten batches in a row and none
            was ready. A worker that was idle for half a minute is ended.
        cpus_per_worker: CPUs that Ray reserves for each worker, and its number of threads.
        resources: further resources that Ray reserves for each worker, for instance ``{"cpu_node": 0.01}`` to place
            them on nodes with this resource.
        start_timeout_s: maximum time in seconds that a trainer waits for the first worker before it raises an error.
        name: name of the pool; by default a new one.

    Example:
        >>> pool = RayPool(workers=8, cpus_per_worker=4)
        >>> pipe = RayPipeline(training("photos", shard="auto"), pool=pool)  # in each trainer
    """

    workers: int | None = None
    min_workers: int | None = None
    max_workers: int | None = None
    cpus_per_worker: float = 1
    resources: Mapping[str, float] | None = None
    start_timeout_s: float = 120.0
    name: str = field(default_factory=lambda: f"pool-{uuid.uuid4().hex[:12]}")
    is_shared: bool = True

    def __post_init__(self) -> None:
        for name in ("workers", "min_workers", "max_workers"):
            value = getattr(self, name)
            if value is None:
                continue
            if not is_integer(value):
                raise ArgumentTypeError(f"{name} must be an integer; got {value!r}.")
            if not 1 <= value <= _MAX_WORKERS:
                raise ArgumentValueError(f"{name} must be between 1 and {_MAX_WORKERS}; got {value}.")
        if self.workers is not None and (self.min_workers is not None or self.max_workers is not None):
            raise ArgumentValueError(
                "workers cannot be used together with min_workers or max_workers.",
                hint="Specify workers=8 for a fixed number, or min_workers=2, max_workers=8.",
            )
        if self.maximum < self.minimum:
            raise ArgumentValueError(f"min_workers={self.minimum} is greater than max_workers={self.maximum}.")
        for name, value in (("cpus_per_worker", self.cpus_per_worker), ("start_timeout_s", self.start_timeout_s)):
            if not is_number(value):
                raise ArgumentTypeError(f"{name} must be a number; got {value!r}.")
            if not 0 < value < math.inf:
                raise ArgumentValueError(f"{name} must be above 0; got {value!r}.")

    @property
    def minimum(self) -> int:
        """Minimum number of workers."""
        if self.workers is not None:
            return self.workers
        return self.min_workers or min(1, self.max_workers or 1)

    @property
    def maximum(self) -> int:
        """Maximum number of workers."""
        return self.workers or self.max_workers or self.minimum

    @property
    def threads(self) -> int:
        """Number of threads of each worker."""
        return max(1, round(self.cpus_per_worker))

    def start_worker(self, number: int) -> Any:
        """Return a new worker, or a worker that another trainer started; Ray starts it when its resources are free.

        Args:
            number: number of the worker, from 0.
        """
        options: dict[str, Any] = {"num_cpus": self.cpus_per_worker, "max_restarts": 0, "max_task_retries": 0}
        # Spread over the nodes: on the trainer's node, Ray Train reserves CPUs only for the trainers themselves.
        options["scheduling_strategy"] = "SPREAD"
        if self.resources:
            options["resources"] = dict(self.resources)
        if self.is_shared:
            options |= {
                "name": f"dalify-{self.name}-{number}",
                "namespace": _NAMESPACE,
                "lifetime": "detached",
                "get_if_exists": True,
            }
        return ray.remote(RayWorker).options(**options).remote()

    def close(self) -> None:
        """End the workers. Trainers that still use them start others."""
        for number in range(self.maximum):
            with suppress(ValueError):  # no worker has this name
                ray.kill(ray.get_actor(f"dalify-{self.name}-{number}", namespace=_NAMESPACE))

    def __enter__(self) -> RayPool:
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers."""
        self.close()
