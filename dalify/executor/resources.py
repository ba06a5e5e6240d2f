"""The resources that an engine computes with."""

from __future__ import annotations

from dataclasses import dataclass, field

from dalify.base.limits import Limits
from dalify.base.threads import ThreadPool
from dalify.data import BufferPool
from dalify.executor.arena import Arenas


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The resources that an engine computes with.

    Attributes:
        threads: worker threads, which end with the engine.
        pool: memory for the outputs of stages.
        pinned_pool: memory for outputs of stages that the device reads; None for `pool`.
        arenas: scratch memory of chunks.
        torch_device: device of the device stages; None without such stages.
        device_id: index of the accelerator of the pipeline; None for torch's current accelerator.
        limits: limits for all computations of the engine; None for the limits of the process.
    """

    threads: ThreadPool
    pool: BufferPool
    pinned_pool: BufferPool | None = None
    arenas: Arenas = field(default_factory=Arenas)
    torch_device: str | None = None
    device_id: int | None = None
    limits: Limits | None = None
