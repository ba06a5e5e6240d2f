"""Rank and number of processes, from torch.distributed or the launcher's environment."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch.distributed

from dalify.base.errors import ArgumentValueError
from dalify.sources.sharding import resolve_shard

ALONE = {"shard_id": 0, "num_shards": 1}
# According to their documentation.
LAUNCHERS = {
    "torchrun": ("RANK", "WORLD_SIZE"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    "MVAPICH": ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    "MPICH": ("PMI_RANK", "PMI_SIZE"),
    "srun": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
}


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*(name for names in LAUNCHERS.values() for name in names), "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)


def test_as_specified() -> None:
    assert resolve_shard({"shard_id": 2, "num_shards": 3}) == (2, 3)
    assert resolve_shard({"shard": None, **ALONE}) == (0, 1)


def test_without_a_launcher() -> None:
    assert resolve_shard({"shard": "auto", **ALONE}) == (0, 1)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_environment_of_the_launcher(monkeypatch: pytest.MonkeyPatch, launcher: str) -> None:
    rank, size = LAUNCHERS[launcher]
    monkeypatch.setenv(rank, "3")
    monkeypatch.setenv(size, "8")
    assert resolve_shard({"shard": "auto", **ALONE}) == (3, 8)
    assert resolve_shard(ALONE) == (0, 1)


def test_torchrun_inside_srun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": 5, "WORLD_SIZE": 8, "SLURM_PROCID": 1, "SLURM_STEP_NUM_TASKS": 2}.items():
        monkeypatch.setenv(name, str(value))
    assert resolve_shard({"shard": "auto", **ALONE}) == (5, 8)


def test_a_batch_script_of_slurm_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert resolve_shard({"shard": "auto", **ALONE}) == (0, 1)


@pytest.mark.parametrize("is_initialized", [True, False])
def test_group_of_jax(monkeypatch: pytest.MonkeyPatch, is_initialized: bool) -> None:
    def started() -> int:
        assert is_initialized, "JAX's devices are started"
        return 4

    jax = SimpleNamespace(
        distributed=SimpleNamespace(is_initialized=lambda: is_initialized),
        process_index=lambda: started() - 2,
        process_count=started,
    )
    monkeypatch.setitem(sys.modules, "jax", cast("Any", jax))
    assert resolve_shard({"shard": "auto", **ALONE}) == ((2, 4) if is_initialized else (0, 1))


def test_group_of_torch(tmp_path: Any) -> None:
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=store)
    try:
        assert resolve_shard({"shard": "auto", **ALONE}) == (0, 1)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shard": "all", **ALONE}, "shard must be 'auto' or omitted; got 'all'"),
        ({"shard": "auto", "shard_id": 1, "num_shards": 2}, "cannot be used together"),
    ],
)
def test_mistakes(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentValueError, match=message):
        resolve_shard(arguments)


def test_environment_variable_that_is_not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(ArgumentValueError, match="RANK, which is not an integer: 'first'"):
        resolve_shard({"shard": "auto", **ALONE})


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"WORLD_SIZE": "8"}, "WORLD_SIZE is set, but RANK is not"),
        ({"RANK": "3"}, "RANK is set, but WORLD_SIZE is not"),
        ({"RANK": "8", "WORLD_SIZE": "8"}, "rank 8 is invalid for 8 processes"),
        ({"PMI_RANK": "-1", "PMI_SIZE": "2"}, "rank -1 is invalid for 2 processes"),
    ],
)
def test_inconsistent_environments(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ArgumentValueError, match=message):
        resolve_shard({"shard": "auto", **ALONE})
