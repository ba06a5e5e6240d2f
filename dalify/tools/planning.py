"""Compute the cores, machines and network bandwidth that a training job needs, for ``dalify.tools.plan``.

The constants are measured, see docs/scaling.md; all other numbers are computed from them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

DTYPE_BYTES = {"uint8": 1, "float16": 2, "float32": 4}

# Measured by `python -m benchmarks costs`; docs/scaling.md has the measurements.
_MS_PER_IMAGE = 0.1
_MS_PER_MEGAPIXEL = 0.9
_MS_PER_JPEG_MEGABYTE = 5.0
_FLOAT_MS_PER_MEGAVALUE = 0.3
_TRANSPORT_S_PER_GB = 0.3
_PROCESS_MB = 200
# Threads of one process share the GIL. Threads of a pipeline without other processes compute a batch each if there are
# more than eight: 16 do the work of 15 (simulated, `python -m benchmarks scaling`).
_MAX_THREADS = 16
_THREADS_PER_BATCH = 8
# A worker process computes one batch at a time: 8 threads do the work of 6.
_MAX_THREADS_PER_WORKER = 6
# Batches that a consumer may hold without a copy, as in `Pipeline(processes=N)`.
_HELD_BATCHES = 4


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The costs of one image.

    Attributes:
        stored_bytes: size in storage, for instance of a JPEG file.
        values: number of values that the network gets.
        dtype: element type of these values.
        prepare_ms: CPU time from the stored bytes to these values, including Python functions.
        floats_ms: share of ``prepare_ms`` for the conversion to float.
        python_ms: share of ``prepare_ms`` that holds the GIL: Python functions of users.
        transport_s_per_gb: CPU time of sender and receiver together.
        process_mb: memory of a process, without batches.
    """

    stored_bytes: float
    values: int
    dtype: str
    prepare_ms: float
    floats_ms: float
    python_ms: float = 0.0
    transport_s_per_gb: float = _TRANSPORT_S_PER_GB
    process_mb: float = _PROCESS_MB

    @classmethod
    def of_jpeg(cls, *, megapixels: float, stored_bytes: float, values: int, dtype: str, python_ms: float) -> Costs:
        """Return the costs of a JPEG file that is decoded, cropped, resized and, for floats, normalized."""
        decoding = _MS_PER_IMAGE + _MS_PER_MEGAPIXEL * megapixels + _MS_PER_JPEG_MEGABYTE * stored_bytes / 1e6
        total_ms = decoding + _floats_ms(values, dtype) + python_ms
        return cls.measured(
            prepare_ms=total_ms, stored_bytes=stored_bytes, values=values, dtype=dtype, python_ms=python_ms
        )

    @classmethod
    def measured(
        cls, *, prepare_ms: float, stored_bytes: float, values: int, dtype: str, python_ms: float = 0.0
    ) -> Costs:
        """Return the costs of an image for a measured pipeline."""
        floats_ms = min(prepare_ms - python_ms, _floats_ms(values, dtype))
        return cls(
            stored_bytes=stored_bytes,
            values=values,
            dtype=dtype,
            prepare_ms=prepare_ms,
            floats_ms=floats_ms,
            python_ms=python_ms,
        )

    def bytes_as(self, dtype: str) -> int:
        """Return the size in bytes of the values that the network gets, with an element type."""
        return self.values * DTYPE_BYTES[dtype]


def _floats_ms(values: int, dtype: str) -> float:
    return 0.0 if dtype == "uint8" else _FLOAT_MS_PER_MEGAVALUE * values / 1e6


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training job and the machines for it.

    Attributes:
        gpus: total number of GPUs.
        images_per_second: number of images that one GPU processes per second.
        gpus_per_node: maximum number of GPUs of a machine.
        cores_per_node: number of cores of a machine with GPUs.
        cores_per_cpu_node: number of cores of a machine without GPUs.
        gbit_per_node: network bandwidth of each machine in Gbit/s, in each direction.
        trainer_cores: number of cores per GPU that are reserved for the trainer.
        headroom: additional cores, as a fraction of those needed.
        batch_size: batch size of each GPU.
        prefetch: ``prefetch_queue_depth``.
    """

    gpus: int
    images_per_second: float
    gpus_per_node: int
    cores_per_node: int
    cores_per_cpu_node: int
    gbit_per_node: float
    trainer_cores: int
    headroom: float
    batch_size: int
    prefetch: int

    @property
    def gpu_nodes(self) -> int:
        """Number of machines with GPUs."""
        return _ceil(self.gpus / self.gpus_per_node)

    @property
    def gpus_of_node(self) -> int:
        """Maximum number of GPUs that the job uses on one machine."""
        return min(self.gpus, self.gpus_per_node)

    @property
    def total_rate(self) -> float:
        """Images per second of all GPUs."""
        return self.gpus * self.images_per_second


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where images are prepared, and in which form they are sent to the GPUs, with the machines that this needs.

    Attributes:
        sent: data sent to the machines with GPUs: ``JPEG`` for stored files, or an element type.
        bytes_per_image: size of an image as it is sent.
        cores_per_gpu: number of cores per GPU for data on the machine with the GPU.
        cpu_nodes: number of machines without GPUs.
        workers: total number of worker processes (Ray actors) on these machines.
        cores_per_worker: number of cores of each worker.
        cpu_cores: total number of cores in use on machines without GPUs, including headroom.
        node_gbit: Gbit/s that a machine with GPUs receives.
        cpu_node_gbit: Gbit/s that a machine without GPUs receives or sends, the maximum of both.
        problems: exceeded limits; empty if there are none.
    """

    sent: str
    bytes_per_image: float
    cores_per_gpu: int
    cpu_nodes: int = 0
    workers: int = 0
    cores_per_worker: int = 0
    cpu_cores: float = 0.0
    node_gbit: float = 0.0
    cpu_node_gbit: float = 0.0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The recommendation for a job.

    Attributes:
        placements: all of them, in order of preference.
        chosen: the first one without problems, or None.
        threads: ``num_threads`` of each GPU's pipeline, or of each worker's on other machines.
        processes: ``processes`` of each of these pipelines; 0: threads are sufficient.
        node_gb: memory in GB of a machine with GPUs for processes and batches.
        cpu_node_gb: the same for a machine without GPUs; 0 if there are none.
    """

    placements: tuple[Placement, ...]
    chosen: Placement | None
    threads: int = 0
    processes: int = 0
    node_gb: float = 0.0
    cpu_node_gb: float = 0.0


def recommend(job: Job, costs: Costs) -> Recommendation:
    """Return all placements for a job, and the first one without problems.

    Stored files are preferred, because they are smallest; then uint8, which the receiver converts; then the type that
    the network gets.
    """
    placements = [_prepare_on_gpu_nodes(job, costs)]
    placements += [_prepare_on_cpu_nodes(dtype, job, costs) for dtype in dict.fromkeys(("uint8", costs.dtype))]
    chosen = next((placement for placement in placements if not placement.problems), None)
    if chosen is None:
        return Recommendation(placements=tuple(placements), chosen=None)
    is_remote = chosen.cpu_nodes > 0
    threads = chosen.cores_per_worker if is_remote else chosen.cores_per_gpu
    processes = 0
    if not is_remote and (costs.python_ms or threads > _MAX_THREADS):
        python_cores = _ceil(job.images_per_second * costs.python_ms / 1e3 * (1 + job.headroom))
        processes = min(threads, max(python_cores, _ceil(threads / _MAX_THREADS_PER_WORKER)))
    used_gb = job.batch_size * costs.bytes_as(costs.dtype) / 1e9
    process_gb = costs.process_mb / 1e3
    batches = job.prefetch + (2 * (processes - 1) + _HELD_BATCHES if processes else 1)
    if not is_remote and not processes and threads > _THREADS_PER_BATCH:
        batches = max(batches, threads + 1)
    node_gb = job.gpus_of_node * (process_gb * (1 + processes) + batches * used_gb)
    cpu_node_gb = 0.0
    if is_remote:
        workers = _ceil(chosen.workers / chosen.cpu_nodes)
        sent_gb = job.batch_size * chosen.bytes_per_image / 1e9
        cpu_node_gb = workers * (process_gb + (1 + job.prefetch) * sent_gb)
        node_gb += job.gpus_of_node * job.prefetch * sent_gb
    return Recommendation(
        placements=tuple(placements),
        chosen=chosen,
        threads=threads,
        processes=processes,
        node_gb=node_gb,
        cpu_node_gb=cpu_node_gb,
    )


def _prepare_on_gpu_nodes(job: Job, costs: Costs) -> Placement:
    cores = _cores(job.images_per_second, costs.prepare_ms, job.headroom)
    return _with_limits(job, Placement(sent="JPEG", bytes_per_image=costs.stored_bytes, cores_per_gpu=_ceil(cores)))


def _prepare_on_cpu_nodes(dtype: str, job: Job, costs: Costs) -> Placement:
    """Return the placement in which machines without GPUs prepare images and send them with an element type."""
    sent_bytes = costs.bytes_as(dtype)
    transport_ms = sent_bytes / 1e9 * costs.transport_s_per_gb * 1e3 / 2  # of the sender or the receiver
    floats_ms = 0.0 if dtype == costs.dtype else costs.floats_ms
    here = _cores(job.images_per_second, transport_ms + floats_ms, job.headroom)
    there_ms = costs.prepare_ms - floats_ms + transport_ms
    there = _cores(job.total_rate, there_ms, job.headroom)
    # Python functions hold the GIL of their process: more cores than this would wait for it.
    max_cores = _MAX_THREADS_PER_WORKER
    if costs.python_ms:
        max_cores = min(max_cores, max(1, math.floor(there_ms / costs.python_ms)))
    per_worker = min(max_cores, job.cores_per_cpu_node)
    workers_per_node = job.cores_per_cpu_node // per_worker
    busiest = max(sent_bytes, costs.stored_bytes)
    nodes = max(
        _ceil(there / (workers_per_node * per_worker)),
        _ceil(_gbit(job.total_rate, busiest) / job.gbit_per_node),
    )
    placement = Placement(
        sent=dtype,
        bytes_per_image=sent_bytes,
        cores_per_gpu=_ceil(here),
        cpu_nodes=nodes,
        workers=min(nodes * workers_per_node, max(nodes, _ceil(there / per_worker))),
        cores_per_worker=per_worker,
        cpu_cores=there,
        cpu_node_gbit=_gbit(job.total_rate, busiest) / nodes,
    )
    return _with_limits(job, placement)


def _with_limits(job: Job, placement: Placement) -> Placement:
    """Return a placement with what the machines with GPUs receive, and the limits that it exceeds."""
    gpus = job.gpus_of_node
    node_gbit = _gbit(gpus * job.images_per_second, placement.bytes_per_image)
    problems: list[str] = []
    needed = gpus * (placement.cores_per_gpu + job.trainer_cores)
    if needed > job.cores_per_node:
        problems.append(f"a GPU node needs {needed:,} cores and has {job.cores_per_node:,}")
    if node_gbit > job.gbit_per_node:
        problems.append(f"a GPU node receives {node_gbit:,.0f} Gbit/s and has {job.gbit_per_node:,.0f}")
    return replace(placement, node_gbit=node_gbit, problems=tuple(problems))


def _cores(rate: float, milliseconds: float, headroom: float) -> float:
    return rate * milliseconds / 1e3 * (1 + headroom)


def _gbit(rate: float, size: float) -> float:
    return rate * size * 8 / 1e9


def _ceil(value: float) -> int:
    """Round up to at least 1, and ignore rounding errors just above an integer."""
    return max(1, math.ceil(value * (1 - 1e-12)))
