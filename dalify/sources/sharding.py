"""Determines the shard of this process."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.base.optional import is_loaded, torch

# Environment variables with rank and number of processes, by launcher; inner launchers first, because outer ones may
# start them. SLURM_NTASKS is not used, because SLURM also sets it in a batch script, which is one process.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),  # torchrun and compatible launchers
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # mpirun of Open MPI
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),  # of MVAPICH
    ("PMI_RANK", "PMI_SIZE"),  # of MPICH and Intel MPI
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # srun
)


def resolve_shard(arguments: Mapping[str, Any]) -> tuple[int, int]:
    """Return ``shard_id`` and ``num_shards``.

    Args:
        arguments: arguments of a reader. With ``shard="auto"``, rank and number of processes are taken from
            ``torch.distributed``, Ray Train or ``jax.distributed`` if initialized, otherwise from the environment
            variables of torchrun, mpirun or srun; without them they are 0 and 1.

    Raises:
        ArgumentValueError: ``shard`` is invalid or specified twice, or the environment is inconsistent.
    """
    shard = arguments.get("shard")
    specified = arguments["shard_id"], arguments["num_shards"]
    if shard is None:
        return specified
    if shard != "auto":
        raise ArgumentValueError(
            f"shard must be 'auto' or omitted; got {shard!r}.", hint="Use shard_id and num_shards for numbers."
        )
    if specified != (0, 1):
        raise ArgumentValueError("shard='auto' cannot be used together with shard_id or num_shards.")
    return _from_libraries() or _from_environment() or (0, 1)


def _from_libraries() -> tuple[int, int] | None:
    """Return rank and size of the initialized process group; None without one."""
    if is_loaded("torch.distributed") and torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    if (found := _from_ray_train()) is not None:
        return found
    jax: Any = sys.modules.get("jax")
    # Without initialization, querying the rank would initialize JAX's devices.
    if jax is not None and getattr(jax.distributed, "is_initialized", bool)():
        return jax.process_index(), jax.process_count()
    return None


def _from_ray_train() -> tuple[int, int] | None:
    """Return rank and size of the workers of Ray Train; None outside of them."""
    train: Any = sys.modules.get("ray.train")
    if train is None:
        return None
    with warnings.catch_warnings():  # get_context() warns outside of a worker
        warnings.simplefilter("ignore")
        try:
            context = train.get_context()
            size = context.get_world_size()
            return None if size is None else (context.get_world_rank(), size)
        except RuntimeError:  # newer versions raise it instead of warning
            return None


def _from_environment() -> tuple[int, int] | None:
    """Return rank and size from a launcher's environment variables; None without one."""
    for rank_name, size_name in _LAUNCHERS:
        rank, size = _number(rank_name), _number(size_name)
        if rank is None and size is None:
            continue
        if rank is None or size is None:
            if rank_name == "SLURM_PROCID":  # in a batch script
                continue
            given, missing = (size_name, rank_name) if rank is None else (rank_name, size_name)
            raise ArgumentValueError(
                f"shard='auto' reads the environment variables {rank_name} and {size_name}; {given} is set, but "
                f"{missing} is not set.",
                hint="Start the program with a launcher such as torchrun, or specify shard_id and num_shards.",
            )
        if not 0 <= rank < size:
            raise ArgumentValueError(
                f"shard='auto' reads the environment variables {rank_name} and {size_name}, but rank {rank} is "
                f"invalid for {size} processes.",
                hint="Unset them if the program is not started by a launcher.",
            )
        return rank, size
    return None


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise ArgumentValueError(
            f"shard='auto' reads the environment variable {name}, which is not an integer: {text!r}."
        ) from None
