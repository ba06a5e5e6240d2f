"""The recommendations of the planner suffice by independent formulas, and grow with the job."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dalify.tools.planning import DTYPE_BYTES, Costs, Job, Placement, Recommendation, recommend

JOB = Job(
    gpus=8,
    images_per_second=3000,
    gpus_per_node=8,
    cores_per_node=64,
    cores_per_cpu_node=64,
    gbit_per_node=100,
    trainer_cores=1,
    headroom=0.1,
    batch_size=64,
    prefetch=2,
)

jobs = st.builds(
    Job,
    gpus=st.integers(1, 3000),
    images_per_second=st.floats(1, 20_000),
    gpus_per_node=st.integers(1, 16),
    cores_per_node=st.integers(4, 256),
    cores_per_cpu_node=st.integers(1, 256),
    gbit_per_node=st.floats(1, 800),
    trainer_cores=st.integers(0, 4),
    headroom=st.floats(0, 1),
    batch_size=st.integers(1, 512),
    prefetch=st.integers(1, 8),
)
jpeg_costs = st.builds(
    Costs.of_jpeg,
    megapixels=st.floats(0.01, 30),
    stored_bytes=st.floats(1e3, 2e7),
    values=st.integers(1000, 3_000_000),
    dtype=st.sampled_from(sorted(DTYPE_BYTES)),
    python_ms=st.one_of(st.just(0.0), st.floats(0.01, 50)),
)
measured_costs = st.builds(
    lambda prepare_ms, python_share, **given: Costs.measured(
        prepare_ms=prepare_ms, python_ms=prepare_ms * python_share, **given
    ),
    prepare_ms=st.floats(0.01, 100),
    python_share=st.sampled_from([0.0, 0.3, 1.0]),
    stored_bytes=st.floats(1e3, 2e7),
    values=st.integers(1000, 3_000_000),
    dtype=st.sampled_from(sorted(DTYPE_BYTES)),
)
all_costs = st.one_of(jpeg_costs, measured_costs)
ALMOST = 1 - 1e-9


def cores_of(job: Job, recommendation: Recommendation) -> int:
    """Return the cores that a plan keeps for data on all machines, in whole ones."""
    placement = recommendation.chosen
    assert placement is not None
    return job.gpus * placement.cores_per_gpu + placement.workers * placement.cores_per_worker


@given(jobs, all_costs)
def test_a_recommendation_meets_the_target(job: Job, costs: Costs) -> None:
    recommendation = recommend(job, costs)
    placement = recommendation.chosen
    assume(placement is not None)
    assert placement is not None
    per_second = job.images_per_second * (1 + job.headroom)
    on_node = min(job.gpus, job.gpus_per_node)
    # A machine with GPUs holds its trainers and what prepares or receives data.
    assert on_node * (placement.cores_per_gpu + job.trainer_cores) <= job.cores_per_node
    bits = placement.bytes_per_image * 8
    assert on_node * job.images_per_second * bits <= job.gbit_per_node * 1e9 / ALMOST
    if not placement.cpu_nodes:
        assert placement.bytes_per_image == costs.stored_bytes
        assert recommendation.threads * 1e3 / costs.prepare_ms >= per_second * ALMOST
        if costs.python_ms:
            # Each process computes one Python function at a time.
            assert recommendation.processes * 1e3 / costs.python_ms >= per_second * ALMOST
            assert recommendation.processes <= recommendation.threads
        else:
            # More than 16 threads of one process hardly do more work, and more than six of a worker.
            assert (recommendation.processes == 0) == (recommendation.threads <= 16)
            assert recommendation.processes == 0 or 6 * recommendation.processes >= recommendation.threads
        return
    total = job.gpus * per_second
    transport_ms = placement.bytes_per_image * costs.transport_s_per_gb / 1e9 * 1e3 / 2
    floats_ms = costs.floats_ms if placement.sent != costs.dtype else 0.0
    there_ms = costs.prepare_ms - floats_ms + transport_ms
    assert placement.workers * placement.cores_per_worker * 1e3 / there_ms >= total * ALMOST
    assert placement.cores_per_gpu * 1e3 >= per_second * (transport_ms + floats_ms) * ALMOST
    # Workers fit on their machines, and no interpreter needs more than one core for Python code.
    assert math.ceil(placement.workers / placement.cpu_nodes) * placement.cores_per_worker <= job.cores_per_cpu_node
    assert placement.workers >= placement.cpu_nodes
    if costs.python_ms and placement.cores_per_worker > 1:
        assert placement.cores_per_worker * costs.python_ms <= there_ms / ALMOST
    for bytes_per_image in (placement.bytes_per_image, costs.stored_bytes):  # out and in
        used = job.gpus * job.images_per_second * bytes_per_image * 8 / placement.cpu_nodes
        assert used <= job.gbit_per_node * 1e9 / ALMOST


@given(jobs, all_costs, st.integers(1, 100))
def test_more_gpus_need_at_least_as_many_cores(job: Job, costs: Costs, more: int) -> None:
    larger = replace(job, gpus=job.gpus + more)
    one, other = recommend(job, costs), recommend(larger, costs)
    assume(one.chosen is not None and other.chosen is not None)
    assert cores_of(larger, other) >= cores_of(job, one)


@given(jobs, all_costs, st.floats(1, 10))
def test_faster_gpus_need_at_least_as_many_cores(job: Job, costs: Costs, factor: float) -> None:
    faster = replace(job, images_per_second=job.images_per_second * factor)
    for one, other in zip(recommend(job, costs).placements, recommend(faster, costs).placements, strict=True):
        assert other.cores_per_gpu >= one.cores_per_gpu
        assert other.cpu_nodes >= one.cpu_nodes
        assert len(other.problems) >= len(one.problems)


@given(jobs, all_costs, st.integers(2, 50))
def test_resources_of_equal_machines_add_up(job: Job, costs: Costs, factor: int) -> None:
    job = replace(job, gpus=job.gpus_per_node)
    larger = replace(job, gpus=factor * job.gpus_per_node)
    for one, other in zip(recommend(job, costs).placements, recommend(larger, costs).placements, strict=True):
        assert (other.cores_per_gpu, other.problems) == (one.cores_per_gpu, one.problems)
        assert other.node_gbit == pytest.approx(one.node_gbit)
        assert other.cpu_cores == pytest.approx(factor * one.cpu_cores)
        # Machines without GPUs are shared: rounding up once needs no more than rounding up for each.
        assert other.cpu_nodes <= factor * one.cpu_nodes


@given(jobs, all_costs, st.floats(0.1, 10))
def test_units_of_time_change_nothing(job: Job, costs: Costs, factor: float) -> None:
    """Images that come half as fast and take twice as long, over a network of half the speed, are the same job."""
    slower = replace(
        job,
        images_per_second=job.images_per_second * factor,
        gbit_per_node=job.gbit_per_node * factor,
    )
    times = ("prepare_ms", "floats_ms", "python_ms", "transport_s_per_gb")
    dearer = replace(costs, **{name: getattr(costs, name) / factor for name in times})
    for one, other in zip(recommend(job, costs).placements, recommend(slower, dearer).placements, strict=True):
        assert abs(other.cores_per_gpu - one.cores_per_gpu) <= 1  # where a product is an integer
        assert other.cpu_cores == pytest.approx(one.cpu_cores)


def chosen(job: Job = JOB, **changes: Any) -> Placement | None:
    given: dict[str, Any] = {
        "megapixels": 0.2,
        "stored_bytes": 69e3,
        "values": 150_528,
        "dtype": "float32",
        "python_ms": 0.0,
    }
    return recommend(job, Costs.of_jpeg(**{**given, **changes})).chosen


def test_the_format_of_sent_data() -> None:
    near = chosen()
    assert near is not None
    assert (near.sent, near.cpu_nodes) == ("JPEG", 0)
    far = chosen(replace(JOB, cores_per_node=24))  # no room to decode
    assert far is not None
    assert (far.sent, far.cpu_nodes) == ("uint8", 1)
    # Too few cores to receive images in any format.
    assert chosen(replace(JOB, cores_per_node=16, images_per_second=20_000, gbit_per_node=1000)) is None
    assert chosen(replace(JOB, gbit_per_node=5)) is None  # not even JPEG


def test_by_hand() -> None:
    """One core: 1,000 images/s; 2 GPUs of 3,500 images/s with half of the cores to spare: 5.25 cores each."""
    costs = Costs.measured(prepare_ms=1.0, stored_bytes=1e5, values=3, dtype="uint8", python_ms=0.5)
    recommendation = recommend(replace(JOB, gpus=2, images_per_second=3500, headroom=0.5), costs)
    assert recommendation.chosen is not None
    assert recommendation.threads == 6
    assert recommendation.processes == 3  # 2.625 of them are in Python
    assert recommendation.chosen.node_gbit == pytest.approx(2 * 3500 * 1e5 * 8 / 1e9)
